package command_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// twoSizes is a plan with something to choose from.
const twoSizes = `plan "sizes" {}
variable "size" { default = 10 }
target "t" { driver = "null" }
dataset "d" {
	keys { count = 10 }
	values { size = var.size }
}
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed { iterations = 10 }
}
experiment {
	repeat   = 2
	baseline = "small"
	variant "small" { size = 10 }
	variant "large" { size = 20 }
}
`

// In fish, complete answers as Tab would show it.
const askFish = `loadgen completion fish | source
for line in $argv
    echo "$line: $(complete -C $line | string replace -r "\t.*" "")"
end`

// In zsh, Tab is pressed at a terminal, and another key shows what became of the line.
const askZsh = `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D; source <(loadgen completion zsh)
    show() { zle -I; print -r -- "line: $BUFFER."; BUFFER=; }; zle -N show; bindkey "^X" show; print rea""dy'
zpty -r -m shell said '*ready*'
for line; do
    zpty -w -n shell $line$'\t\x18'
    zpty -r -m shell said '*line: *.'$'\r\n*' || exit 1
    said=${said#*line: }
    print -r -- "$line: ${said%%.$'\r\n'*}"
done
zpty -d shell`

// TestCompletionInShells loads what the program writes for a shell into that shell, and presses Tab. Bash is asked in testdata/script.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	lines := []struct{ typed, fish, zsh string }{
		{"loadgen pl", "plan", "loadgen plan "},
		{"loadgen plan in", "init", "loadgen plan init "},
		{"loadgen target serve --protocol m", "memcached", "loadgen target serve --protocol memcached "},
		{"loadgen coordinator run plan.hcl --variant s", "small", "loadgen coordinator run plan.hcl --variant small "},
		{"loadgen runs show --runs runs 2", "RUN", "loadgen runs show --runs runs RUN "},
		{"loadgen plan check pl", "plan.hcl", "loadgen plan check plan.hcl "},
		{"loadgen plan check plan.hcl ", "", "loadgen plan check plan.hcl "},
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plan.hcl"), []byte(twoSizes), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.txt"), nil, 0o600))
	l := beginFile(t, filepath.Join(dir, "plan.hcl"), "--once", "--runs", filepath.Join(dir, "runs"))
	id := l.result(60 * time.Second).ID
	for _, shell := range []struct{ name, script string }{{"fish", askFish}, {"zsh", askZsh}} {
		t.Run(shell.name, func(t *testing.T) {
			path, missing := exec.LookPath(shell.name)
			servertest.Require(t, shell.name, missing)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			args, want := []string{"-c", shell.script}, ""
			if shell.name == "zsh" {
				args = []string{"-f", "-c", shell.script, "zsh"}
			}
			for _, line := range lines {
				args = append(args, line.typed)
				answer := line.fish
				if shell.name == "zsh" {
					answer = line.zsh
				}
				want += line.typed + ": " + strings.ReplaceAll(answer, "RUN", id) + "\n"
			}
			cmd := exec.CommandContext(ctx, path, args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "TERM=dumb")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, want, string(out))
		})
	}
}
