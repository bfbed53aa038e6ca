#!/bin/sh
# tell.sh WHAT COMMAND …: runs a command, and says every 45 seconds (TELL_EVERY) that it still does, for how long, and which
# tests run. A long silence looks like a hang.
what=$1
shift
every=${TELL_EVERY:-45}
echo "$what"
(
	n=0
	while sleep 1 >/dev/null 2>&1; do
		n=$((n + 1))
		[ $((n % every)) = 0 ] || continue
		now=$(ps -eo comm= 2>/dev/null | sed -n 's/\.test$//p' | sort -u | tr '\n' ' ')
		echo "… $what: $n s so far${now:+; now: ${now% }}"
	done
) &
beat=$!
trap 'kill $beat 2>/dev/null' EXIT
trap 'exit 130' INT TERM HUP
"$@"
