# say WHO WORDS..: tells on stderr, after `WHO:`, in lines that fit 80 columns; those that follow the first are indented by two. A word
# is never broken, because it may be a path, which is copied.
say() {
    local line=$1: words word
    shift
    local text="$*"
    read -ra words <<<"${text//$'\n'/ }"
    for word in "${words[@]}"; do
        if [ $((${#line} + 1 + ${#word})) -gt 80 ]; then
            echo "$line" >&2
            line=" "
        fi
        line+=" $word"
    done
    echo "$line" >&2
}
