# Puts the whole system into one folder, which becomes the image's only layer.
rm -rf /var/cache/apt/*.bin /var/cache/ldconfig/* /var/log/*.log /var/log/apt
printf '127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost\n' >/etc/hosts
echo sandbox >/etc/hostname
mkdir -p /opt/opensandbox
mkdir -p -m 1777 /workspace /large_tool_results /conversation_history /blobs
mkdir /.whole
tar --one-file-system -C / --exclude=./.whole -cf - . | tar -C /.whole --numeric-owner -xpf -
cd /.whole
mkdir -p -m 755 proc sys dev run
mkdir -p -m 1777 tmp
rm -f etc/resolv.conf
echo '# No name server: this sandbox has no network.' >etc/resolv.conf
