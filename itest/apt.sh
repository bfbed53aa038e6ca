#!/bin/sh
# Installs Debian packages as root or through sudo, else says what to type.
set -e
if [ "$(id -u)" = 0 ]; then
	sudo=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
	sudo=sudo
else
	echo "missing packages; please run: sudo apt-get update && sudo apt-get install -y --no-install-recommends $*" >&2
	exit 1
fi
tell=$(dirname "$0")/tell.sh
sh "$tell" "fetching the list of packages" $sudo apt-get update -qq
sh "$tell" "installing $*" sh -c 'exec "$@" >/dev/null' sh $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
