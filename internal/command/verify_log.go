package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// verifyWithin is how long the other process may take to read log files back.
const verifyWithin = 10 * time.Minute

// logRoot returns the directory for log files. It creates the default one.
func logRoot(asked string) (string, error) {
	if asked != "" {
		root, err := filepath.Abs(asked)
		if err != nil {
			return "", fmt.Errorf("--log-root: %w", err)
		}
		if info, err := os.Stat(root); err != nil {
			return "", fmt.Errorf("--log-root: %w: make the directory, or write another", err)
		} else if !info.IsDir() {
			return "", fmt.Errorf("--log-root: %s is not a directory: write one", root)
		}
		return root, nil
	}
	root, err := defaultLogRoot()
	if err != nil {
		return "", err
	}
	return root, os.MkdirAll(root, 0o700)
}

func defaultLogRoot() (string, error) {
	runs, err := rundir.DefaultRoot(os.Getenv)
	if err != nil {
		return "", fmt.Errorf("%w; or write --log-root DIR", err)
	}
	return filepath.Join(filepath.Dir(runs), "logs"), nil
}

// existing returns the directory for log files, or the existing one in which it would be created.
func existing(asked string) (string, error) {
	if asked != "" {
		return logRoot(asked)
	}
	root, err := defaultLogRoot()
	for err == nil {
		if _, missing := os.Stat(root); !errors.Is(missing, fs.ErrNotExist) || root == filepath.Dir(root) {
			break
		}
		root = filepath.Dir(root)
	}
	return root, err
}

// verifyApart makes another process check a claim about a driver's log files.
func verifyApart(ctx context.Context, name string, claim []byte) (localfile.Proof, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	exe, err := os.Executable()
	if err != nil {
		return localfile.Proof{}, err
	}
	var out, words bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, "verify-log", name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(claim), &out, &words
	if err := cmd.Run(); err != nil {
		return localfile.Proof{}, fmt.Errorf("verifying process: %w: %s", errors.Join(err, ctx.Err()), strings.TrimSpace(words.String()))
	}
	var proof localfile.Proof
	if err := json.Unmarshal(out.Bytes(), &proof); err != nil {
		return localfile.Proof{}, fmt.Errorf("output of the verifying process: %w", err)
	}
	return proof, nil
}

// newVerify is that process's command.
func newVerify(known *drivers.Set) *cobra.Command {
	return &cobra.Command{
		Use:    "verify-log DRIVER",
		Short:  "Check that log files hold what standard input says a worker wrote",
		Args:   one("driver"),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			claim, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				return failed("read the claim: %w", err)
			}
			for _, d := range known.All {
				if local, ok := d.(localfile.Driver); ok && d.Name() == args[0] {
					proof, err := local.Verify(claim)
					if err != nil {
						return failed("%w", err)
					}
					return json.NewEncoder(cmd.OutOrStdout()).Encode(proof)
				}
			}
			return fmt.Errorf("no driver %q has log files", args[0])
		},
	}
}
