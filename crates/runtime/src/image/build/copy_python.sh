# Copies the interpreter tree $1, which the host has at $2, to $3: without the packages that its
# owner installed. One ($4) that was linked against its own shared library by path is led to the
# copy.
mkdir -p "$3"
tar -C "$1" -cf - --exclude='./lib/python3.*/site-packages/*' --exclude='./lib/python3.*/test' \
    --exclude='./lib/python3.*/config-*' --exclude='__pycache__' --exclude='*.a' --exclude='./share' . |
    tar -C "$3" --no-same-owner -xf -

python=$3/$4
works() {
    "$python" -I -c 'import ssl, zlib, ctypes, sys; assert sys.base_prefix == sys.argv[1]' "$3"
}
works "$@" 2>/dev/null && exit 0
LD_LIBRARY_PATH=$3/lib "$python" -I - "$2/lib" "$python" <<'END' || true
import pathlib, sys
old, new = sys.argv[1].encode() + b"\0", b"$ORIGIN/../lib\0"
file = pathlib.Path(sys.argv[2]).resolve()
text = file.read_bytes()
if len(new) <= len(old):
    copy = file.with_name("fresh")
    copy.write_bytes(text.replace(old, new.ljust(len(old), b"\0")))
    copy.chmod(0o755)
    copy.rename(file)
END
works "$@" && exit 0
echo "the copied Python does not run on this base; install python3 (3.11 or later) on the host" >&2
exit 1
