package command

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/fleet/identity"
)

func newTokenCreate() *cobra.Command {
	var ttl time.Duration
	var uses int
	var out string
	c := &cobra.Command{
		Use:   "create",
		Short: "Create a token that workers join with",
		Long: `Create a token that workers join with, on the coordinator's machine and as the same user. The coordinator need not be running yet.

Standard output is the token alone; --out writes it to a file that only you may read. The token is shown only once: just a hash of it is
kept. A worker that has joined gets a certificate for its name and one day, renews it by itself, and needs no token when it restarts.

A coordinator that listens beyond the loopback creates a token for its --workers by itself, and prints it. Create others for workers that
join later.`,
		Example: `  loadgen token create
  loadgen token create --ttl 1h --uses 20
  loadgen token create --out token`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tokens, err := ownTokens()
			if err != nil {
				return err
			}
			if err := identity.CheckToken(ttl, uses); err != nil {
				return err
			}
			token, err := tokens.Create(ttl, uses)
			if err != nil {
				return failed("%w", err)
			}
			if err := giveToken(cmd.OutOrStdout(), out, token); err != nil {
				return failed("%w", errors.Join(err, tokens.Revoke(token.ID())))
			}
			workers := "one worker"
			if uses > 1 {
				workers = fmt.Sprintf("%d workers", uses)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%v: for %s, within %v; on each of their machines:\n  loadgen worker --join HOST:PORT --token-file FILE\n", token, workers, short(ttl))
			return nil
		},
	}
	c.Flags().DurationVar(&ttl, "ttl", defaultTTL, "accept it for `DURATION`")
	c.Flags().IntVar(&uses, "uses", 1, "let `N` workers join with it")
	c.Flags().StringVar(&out, "out", "", "write it to a new `FILE` that only you may read")
	return c
}

// giveToken prints a token, or writes it to a new file.
func giveToken(w io.Writer, path string, token *identity.Token) error {
	give := func(w io.Writer) error { _, err := fmt.Fprintln(w, token.Text()); return err }
	if path == "" {
		return give(w)
	}
	return safefile.Create(path, 0o600, give)
}

func newTokenList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List tokens, oldest first",
		Long:    `List tokens, oldest first: usable ones, and those that expired within the last hour. Their secrets are not kept.`,
		Example: `  loadgen token list`,
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tokens, err := ownTokens()
			if err != nil {
				return err
			}
			list, err := tokens.List()
			if err != nil {
				return failed("%w", err)
			}
			return showTokens(cmd.OutOrStdout(), list, time.Now())
		},
	}
}

// showTokens prints a line for each token.
func showTokens(w io.Writer, list []identity.TokenInfo, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no tokens")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOKEN\tCREATED\tWORKERS LEFT\tEXPIRES")
	for _, k := range list {
		expires := "in " + short(k.Expires.Sub(now).Round(time.Second))
		if !now.Before(k.Expires) {
			expires = "expired"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", k.ID, k.Created.Local().Format(time.DateTime), k.Uses, expires)
	}
	return t.Flush()
}

// short is a duration without trailing units that are zero.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

func newTokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token",
		Long: `Revoke a token. Workers that joined with it keep their certificates. To shut them out too, delete fleet/authority.pem in the state
directory: the next coordinator makes a new key, and all workers must join again.`,
		Example: `  loadgen token revoke 3f2a91c0`,
		Args:    one("ID"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return tokenIDs(args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := ownTokens()
			if err != nil {
				return err
			}
			return tokens.Revoke(args[0])
		},
	}
}

// tokenIDs offers the existing tokens if none is on the command line yet.
func tokenIDs(args []string) []string {
	tokens, err := ownTokens()
	if err != nil || len(args) > 0 {
		return nil
	}
	list, err := tokens.List()
	if err != nil {
		return nil
	}
	var ids []string
	for _, k := range list {
		ids = append(ids, k.ID)
	}
	return ids
}

// ownTokens are the tokens of this user's coordinators.
func ownTokens() (*identity.Tokens, error) {
	dir, err := fleetDir()
	if err != nil {
		return nil, err
	}
	tokens, err := identity.OpenTokens(dir)
	if err != nil {
		return nil, failed("%w", err)
	}
	return tokens, nil
}
