# Voxbridge's integration for fish, read behind the user's own files: marks where prompts and commands begin and end (OSC 633 and 133), and the folder (OSC 7).
set -g __vx_nonce $VOXBRIDGE_NONCE
set -e VOXBRIDGE_NONCE VOXBRIDGE_INTEGRATION
function __vx_begins_prompt --on-event fish_prompt
    printf '\e]7;file://%s%s\a\e]133;A\a\e]633;A;%s\a' $hostname $PWD $__vx_nonce
end
function __vx_begins --on-event fish_preexec
    printf '\e]633;C;%s\a\e]133;C\a' $__vx_nonce
end
function __vx_ends --on-event fish_postexec
    set -l code $status
    printf '\e]133;D;%s\a\e]633;D;%s;%s\a' $code $code $__vx_nonce
end
functions -c fish_prompt __vx_users_prompt
function fish_prompt
    __vx_users_prompt
    printf '\e]133;B\a\e]633;B;%s\a' $__vx_nonce
end
