# Copies the interpreter tree $1 to $2 without the packages that its owner installed, and tries it.
mkdir -p "$2"
tar -C "$1" --exclude='./lib/python3.*/site-packages/*' --exclude='__pycache__' --exclude='./lib/*.a' --exclude='./share/doc' -cf - . |
    tar -C "$2" --no-same-owner -xf -
for python in "$2"/bin/python3.*; do
    case $python in *-config) continue ;; esac
    "$python" -c 'import ssl, zlib, ctypes' && exit 0
done
echo "the copied Python does not run on this base; install python3 (3.11 or later) on the host" >&2
exit 1
