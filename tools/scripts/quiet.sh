# shellcheck shell=bash
# Sourced by tools/demo and tools/test, in the project's root: build folders that survive an
# interruption, and steps that say one line unless they fail.

# Without these ccache keeps nothing that was compiled with a precompiled header.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
# Objects with debug information serve every clone: they name their sources from the build folder.
export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
# Meson's units name their sources by whole paths: those below this folder count from the build folder.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}

# Says what begins and, when it ended, after how many seconds. If it fails, shows all its output.
quietly() {  # log file, label, command...
  local log=$1 label=$2 started=$SECONDS rc=0
  shift 2
  echo "$label ..."
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  ended "$rc" "$label" "$started" || cat "$log" >&2
  return "$rc"
}

ended() {  # exit code, label, when it started
  if [ "$1" = 0 ]; then
    echo "$2: $((SECONDS - $3)) s"
  else
    echo "$2: failed after $((SECONDS - $3)) s" >&2
  fi
  return "$1"
}

# A build folder is whole if Meson came to its end in it, for this source tree and these options.
# Folders that the user configured by hand have no stageline-options.txt; their options stand.
is_whole() {  # folder, what stageline-options.txt must say
  local dir=$1 file
  for file in build.ninja meson-private/coredata.dat meson-private/build.dat \
    meson-info/meson-info.json; do
    [ -s "$dir/$file" ] || return 1
  done
  if [ -e "$dir/stageline-options.txt" ]; then
    [ "$(cat "$dir/stageline-options.txt")" = "$2" ]
  else
    grep -q -F "\"source\": \"$PWD\"" "$dir/meson-info/meson-info.json"
  fi
}

# Configures the folder, unless it is whole; what an interrupted Meson left there is removed first.
configure() {  # folder, Meson's options...
  local dir=$1 stamp
  shift
  stamp="$PWD; meson $(meson --version); CXX=${CXX:-}; $*"
  is_whole "$dir" "$stamp" && return 0
  if [ -e "$dir/meson-private" ] || [ -e "$dir/meson-info" ] || [ -e "$dir/meson-logs" ]; then
    rm -rf "$dir"
  fi
  mkdir -p "$dir"
  quietly "$dir/setup.log" "$dir: configuring" meson setup "$dir" "$@" || return
  echo "$stamp" >"$dir/stageline-options.txt"
}

# As many jobs as Ninja would start, but no more than the memory holds: a unit takes up to 1.3 GB.
jobs() {
  local most=$(($(nproc) + 2)) memory
  memory=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo) / 1300000))
  if [ "$memory" -lt 1 ]; then memory=1; fi
  echo $((memory < most ? memory : most))
}

# Builds what is out of date. A terminal shows Ninja's own status line.
compile() {  # folder, targets...
  local dir=$1 started=$SECONDS rc=0
  shift
  if [ -t 1 ] && [ -z "${CI:-}" ]; then
    ninja -j "$(jobs)" -C "$dir" "$@" || rc=$?
    ended "$rc" "$dir: building" "$started"
  else
    quietly "$dir/build.log" "$dir: building" ninja -j "$(jobs)" --quiet -C "$dir" "$@"
  fi
}
