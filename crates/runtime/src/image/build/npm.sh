# Installs Node packages globally. The note that npm keeps of what came from where names the
# registry, which is the host's affair.
if ! command -v npm >/dev/null; then
    echo "this base has no npm; install it on the host, or add nodejs and npm to apt" >&2
    exit 1
fi
npm install --global --prefix /opt/npm -- "$@"
rm -f /opt/npm/lib/node_modules/.package-lock.json
