#!/usr/bin/env bash
# Follows the feed with curl, and resumes by hand after the last event that came whole.
#
# Prints the id and the name of each event on stderr. Takes the address as its argument and the
# token from the environment. Goes on until it is killed, or refused.
set -u

last='' id='' name=''
while :; do
    while IFS= read -r line; do
        case "$line" in
            'HTTP/1.1 200'*) ;;
            'HTTP/'*) printf 'refused %s\n' "$line" >&2; exit 1 ;;
            'id: '*) id="${line#id: }" ;;
            'event: '*) name="${line#event: }" ;;
            '')
                # What was cut off within a frame comes again.
                if [ -n "$id" ]; then
                    printf '%s %s\n' "$id" "$name" >&2
                    last="$id"
                fi
                id='' name=''
                ;;
        esac
    done < <(
        printf 'header = "Authorization: Bearer %s"\n' "$TOKEN" |
            curl --no-buffer --silent --include --globoff --noproxy '*' --max-time 60 --config - \
                --header 'Accept: text/event-stream' --header "Last-Event-ID: $last" "$1"
    )
    id='' name=''
    sleep 1
done
