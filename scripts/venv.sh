# Sourced by the other scripts: makes and fills the project's own .venv, in the directory above this one.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
venv_python=.venv/bin/python

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local name
    for name in python3.13 python3.12 python3.11 python3 python; do
        if is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    cat >&2 <<'MESSAGE'
aaiclick needs Python 3.11 or newer, and none of python3.13, python3.12, python3.11, python3 and python on your PATH
is one. Install it (Debian, Ubuntu: apt-get install python3 python3-venv; macOS: brew install python@3.13; any system:
https://www.python.org/downloads or `uv python install 3.13`) and run this again.
MESSAGE
    exit 2
}

make_venv() {
    local python
    python=$(find_python) || exit 2
    echo "== making .venv with $("$python" --version 2>&1)" >&2
    rm -rf .venv
    if ! "$python" -m venv .venv; then
        rm -rf .venv
        echo "$python cannot make a virtual environment (Debian, Ubuntu: apt-get install python3-venv)." >&2
        exit 2
    fi
}

# install_extras EXTRAS: have the project and the extras («all,dev», or nothing) in .venv; quick when they are.
# One stamp per set of extras tells what was installed from where; «all,dev» contains the others.
install_extras() {
    if ! is_new_enough "$venv_python"; then
        make_venv
    elif ! "$venv_python" -m pip --version >/dev/null 2>&1 && ! "$venv_python" -m ensurepip >/dev/null 2>&1; then
        make_venv
    fi
    if is_installed "$1" || is_installed all,dev; then
        return
    fi
    echo "== installing aaiclick${1:+[$1]} into .venv" >&2
    if [ "$1" != all,dev ] || ! install_locked; then
        "$venv_python" -m pip install --quiet --disable-pip-version-check --editable ".${1:+[$1]}" || exit 1
    fi
    what_to_install >".venv/installed-${1:-base}"
}

# What requirements/dev.lock names, each file compared with its hash. Where the lock cannot serve (a system or a Python
# for which there is no such file), this says so and fails; a file with another hash ends everything.
install_locked() {
    local said
    said=$(mktemp "${TMPDIR:-/tmp}/aaiclick-lock.XXXXXX")
    if "$venv_python" -m pip install --quiet --disable-pip-version-check --require-hashes \
        --requirement requirements/dev.lock >"$said" 2>&1 &&
        "$venv_python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
            --editable . >>"$said" 2>&1; then
        rm -f "$said"
        return
    fi
    cat "$said" >&2
    if grep -q "DO NOT MATCH THE HASHES" "$said"; then
        rm -f "$said"
        echo "== A file is not the one that requirements/dev.lock names. Nothing more is installed." >&2
        exit 1
    fi
    rm -f "$said"
    echo "== requirements/dev.lock CANNOT SERVE this Python or system; installing what pyproject.toml allows, WITHOUT HASHES" >&2
    return 1
}

is_installed() {
    what_to_install | cmp -s - ".venv/installed-${1:-base}"
}

what_to_install() {
    pwd
    cat pyproject.toml requirements/dev.lock
}
