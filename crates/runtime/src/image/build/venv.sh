# Makes the Python environment $1 with the interpreter $2 (empty: the first in PATH that is new
# enough), and puts pip into it: the version that the requirements name, or the newest.
set -eu
venv=$1
python=${2:-}
if [ -z "$python" ]; then
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        found=$(command -v "$name") || continue
        if "$found" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            python=$found
            break
        fi
    done
fi
if [ -z "$python" ]; then
    echo "this base has no Python of version 3.11 or later; add python3 to apt, or take another base" >&2
    exit 1
fi
"$python" -m venv --clear --without-pip "$venv"

wanted=$(sed -n 's/^\(pip==[^ ;]*\).*/\1/p' /run/build/requirements.txt | head -n 1)
wanted=${wanted:-pip}
library=$("$python" -c 'import os; print(os.path.dirname(os.__file__))')
for wheel in "$library"/ensurepip/_bundled/pip-*.whl /usr/share/python-wheels/pip-*.whl /run/build/pip/pip-*.whl; do
    if [ -f "$wheel" ]; then
        PYTHONPATH=$wheel exec "$venv/bin/python" -m pip install --no-compile "$wanted"
    fi
done
if [ -d /run/build/pip/pip ]; then
    PYTHONPATH=/run/build/pip exec "$venv/bin/python" -m pip install --no-compile "$wanted"
fi
if "$python" -m pip --version >/dev/null 2>&1; then
    exec "$python" -m pip --python "$venv/bin/python" install --no-compile "$wanted"
fi
echo "there is no pip to begin with; install python3-venv or python3-pip on the host" >&2
exit 1
