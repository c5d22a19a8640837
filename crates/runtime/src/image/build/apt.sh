# Installs Debian packages from the host's sources and leaves none of apt's own files behind.
apt-get update
apt-get install --yes --no-install-recommends -- "$@"
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/*.log
