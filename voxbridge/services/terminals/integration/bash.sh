# Voxbridge's integration for bash: the user's own file, then marks where prompts and commands begin and end (OSC 633 and 133), and the folder (OSC 7).
[ -r /etc/bash.bashrc ] && . /etc/bash.bashrc
[ -r ~/.bashrc ] && . ~/.bashrc
__vx_nonce=$VOXBRIDGE_NONCE
unset VOXBRIDGE_NONCE
__vx_ran=0
__vx_prompt() {
    local code=$?
    if [ "$__vx_ran" = 1 ]; then
        printf '\e]133;D;%s\a\e]633;D;%s;%s\a' "$code" "$code" "$__vx_nonce"
    fi
    __vx_ran=0
    printf '\e]7;file://%s%s\a\e]133;A\a\e]633;A;%s\a' "$HOSTNAME" "$PWD" "$__vx_nonce"
    return "$code"
}
# The last of the prompt's commands: others may have made the prompt anew, so its end is marked again.
__vx_marked() {
    case $PS1 in
    *'633;B;'*) ;;
    *) PS1+='\[\e]133;B\a\e]633;B;$__vx_nonce\a\]' ;;
    esac
}
# Arithmetic in a prompt is done by the shell itself, a command in it by a child that could not remember.
PS0='${__vx_nonce:0:$((__vx_ran=1,0))}\e]633;C;$__vx_nonce\a\e]133;C\a'
if [ "$(declare -p PROMPT_COMMAND 2>/dev/null | cut -c1-10)" = 'declare -a' ]; then
    PROMPT_COMMAND=(__vx_prompt "${PROMPT_COMMAND[@]}" __vx_marked)
else
    # A line for each: the user's own may end with a semicolon.
    PROMPT_COMMAND=$'__vx_prompt\n'"$PROMPT_COMMAND"$'\n__vx_marked'
fi
