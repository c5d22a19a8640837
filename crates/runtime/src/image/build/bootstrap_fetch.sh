# Downloads what a minimal system is made of, with the host's apt, into /srv/debs, and unpacks it
# into /srv/root: enough of a system to install those packages on properly.
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "this host has no apt; build on a Debian or Ubuntu host, or take the base host" >&2
    exit 1
fi
: >/var/tmp/owned
if ! chown 1:1 /var/tmp/owned 2>/dev/null; then
    echo "Debian packages need more than one user id: give this user subordinate ids (/etc/subuid" \
        "and /etc/subgid; \`barchan doctor\` shows how), or build as root" >&2
    exit 1
fi
apt=/var/tmp/apt
mkdir -p $apt/state/lists/partial $apt/cache/archives/partial /srv/debs /srv/root
: >$apt/status
get() {
    apt-get -o Dir::State=$apt/state -o Dir::State::status=$apt/status -o Dir::Cache=$apt/cache "$@"
}
get update
# A new system has /bin in /usr from the start, and need not be converted by a package.
get install --download-only '?essential' apt usr-is-merged ||
    get install --download-only '?essential' apt
mv $apt/cache/archives/*.deb /srv/debs/
for link in /bin /sbin /lib*; do
    if [ -L "$link" ]; then
        mkdir -p "/srv/root/usr$link"
        ln -s "usr$link" "/srv/root$link"
    fi
done
for deb in /srv/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -C /srv/root --keep-directory-symlink -xpf -
done
: >/srv/root/etc/resolv.conf
