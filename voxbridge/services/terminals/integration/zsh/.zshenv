# Voxbridge's integration for zsh: the user's own files, then marks where prompts and commands begin and end (OSC 633 and 133), and the folder (OSC 7).
# zsh reads this file because ZDOTDIR names its folder. From here on it finds the user's files as ever.
unset ZDOTDIR
typeset -g +x __vx_nonce=$VOXBRIDGE_NONCE
typeset -gi __vx_ran=0
unset VOXBRIDGE_NONCE
[[ -r ~/.zshenv ]] && . ~/.zshenv
__vx_precmd() {
    local code=$?
    if (( __vx_ran )); then
        printf '\e]133;D;%s\a\e]633;D;%s;%s\a' $code $code $__vx_nonce
    fi
    __vx_ran=0
    printf '\e]7;file://%s%s\a\e]133;A\a\e]633;A;%s\a' "$HOST" "$PWD" $__vx_nonce
    # The last of the hooks: others may have made the prompt anew, so its end is marked again.
    [[ $PS1 == *'633;B;'* ]] || PS1+=$'%{\e]133;B\a\e]633;B;'$__vx_nonce$'\a%}'
    precmd_functions=(${precmd_functions:#__vx_precmd} __vx_precmd)
}
__vx_preexec() {
    __vx_ran=1
    printf '\e]633;C;%s\a\e]133;C\a' $__vx_nonce
}
precmd_functions+=(__vx_precmd)
preexec_functions+=(__vx_preexec)
