#!/bin/bash
# What action.yml runs: the plan PLAN with the arguments ARGS, one a line. It puts the summary on the job's page, packs the run, and says loadgen's exit
# code, which a later step ends with.
set -uo pipefail
runs=$RUNNER_TEMP/loadgen-runs
args=()
while IFS= read -r arg; do
	case $arg in
	'') ;;
	-*' '*) args+=("${arg%% *}" "${arg#* }") ;;
	*) args+=("$arg") ;;
	esac
done <<<"$ARGS"
"$LOADGEN" run "$PLAN" --runs "$runs" "${args[@]}"
code=$?
echo "code=$code" >>"$GITHUB_OUTPUT"
if "$LOADGEN" report --runs "$runs" --format markdown >>"$GITHUB_STEP_SUMMARY"; then # of the last run or experiment
	"$LOADGEN" report --runs "$runs" --format github
	pack=$RUNNER_TEMP/loadgen.tar.gz
	"$LOADGEN" runs export --runs "$runs" last -o "$pack" && echo "pack=$pack" >>"$GITHUB_OUTPUT"
fi
exit 0
