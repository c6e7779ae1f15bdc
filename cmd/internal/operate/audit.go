package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"troupe/actors/audit"
	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newAudit() *cobra.Command {
	var r client.AuditRequest
	var since string
	var follows bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who did what (needs mod-admin)",
		Long: `Prints the rows of the audit log, oldest first. With -o jsonl it is an export, which troupe audit verify can check.
--since is a time such as 2026-11-26T09:31:00Z, or a duration such as 24h or 30d.`,
		Example: "  troupe audit --home ./troupe-home --since 24h\n" +
			"  troupe audit --actor john.doe --action token.create -o jsonl\n" +
			"  troupe audit --since 1h --follow",
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "only rows from this time on, or of the last so long")
	f.StringVar(&r.Actor, "actor", "", "only what this user did; system: the server, and commands on its machine")
	f.StringVar(&r.Action, "action", "", "only this action, such as token.create")
	f.BoolVar(&follows, "follow", false, "go on with new rows until interrupted")
	cli.CompleteFlag(cmd, "action", actionsKnown)
	operating(cmd, []string{cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormYAML}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) (err error) {
		if r.Since, err = parseSince(since, time.Now()); err != nil {
			return err
		}
		if known := actionsKnown(); r.Action != "" && !slices.Contains(known, r.Action) {
			return cli.Usagef("--action %q: there is no such action%s", r.Action, cli.DidYouMean(r.Action, known))
		}
		if follows && out.Form != cli.FormTable && out.Form != cli.FormJSONL {
			return cli.Usagef("--follow has no end: use -o table or -o jsonl")
		}
		r.Limit = 1000
		l := &lister{cmd: cmd, out: out, member: "audit", things: "rows", head: []string{"TIME", "ACTOR", "ACTION", "TARGET"}}
		if !follows {
			if err := auditPages(cmd.Context(), c, l, &r); err != nil {
				return err
			}
			return l.end()
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return followAudit(ctx, c, l, &r)
	})
	cmd.AddCommand(newAuditVerify())
	return cmd
}

func actionsKnown() (names []string) {
	for _, a := range audit.Actions() {
		names = append(names, string(a))
	}
	return names
}

// parseSince reads a time, or how long ago that was.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := cli.ParseDuration(text)
	if err != nil {
		return time.Time{}, cli.Usagef("--since %q: it must be a time such as 2026-11-26T09:31:00Z, or a duration such as 24h or 30d", text)
	}
	return now.Add(-ago), nil
}

// auditPages writes what there is from r.After on, and sets that to where it goes on.
func auditPages(ctx context.Context, c *client.Client, l *lister, r *client.AuditRequest) error {
	for {
		page, err := c.Audit(ctx, *r)
		if err != nil {
			return err
		}
		if err := l.page(pageOf(page.Raw, "", page.Items, auditRow)); err != nil {
			return err
		}
		if page.Next == r.After || page.Next == "0" {
			return nil
		}
		r.After = page.Next
	}
}

func auditRow(r *api.AuditRow) []string {
	target := r.Target
	if r.Count > 0 {
		target += " (" + strconv.FormatUint(r.Count, 10) + " times)"
	}
	at := r.TS
	if t, err := time.Parse(time.RFC3339, at); err == nil {
		at = t.UTC().Format(time.RFC3339) // a second is enough for a table
	}
	return []string{at, r.Actor, r.Action, target}
}

// followEvery is the pause between two looks for new rows.
const followEvery = time.Second

// followAudit goes on over answers that a service gives while it is restarted.
func followAudit(ctx context.Context, c *client.Client, l *lister, r *client.AuditRequest) error {
	for {
		err := auditPages(ctx, c, l, r)
		if ctx.Err() != nil {
			return nil
		}
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status < 500 {
			return err
		}
		if err != nil {
			_, _ = fmt.Fprintf(l.cmd.ErrOrStderr(), "%s; retrying\n", client.Printable(err.Error()))
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

func newAuditVerify() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify the chain of hashes of the audit log (needs mod-admin)",
		Long: `Walks along the whole log of the service, or along an export (troupe audit -o jsonl, without --actor and --action),
and prints how many rows are whole and the hash of the last one: keep it elsewhere, and rows that are cut off later show.
The first row that does not fit is named, with exit code 1.`,
		Example: "  troupe audit verify --home ./troupe-home\n" +
			"  troupe audit -o jsonl > audit.jsonl && troupe audit verify --file audit.jsonl",
	}
	cmd.Flags().StringVar(&file, "file", "", "an export to verify in place of the service; - for standard input")
	operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, _ []string) error {
		chain, err := c.VerifyAudit(cmd.Context())
		if err != nil {
			return err
		}
		broken := ""
		if chain.Broken != nil {
			broken = *chain.Broken
		}
		return showChain(cmd.OutOrStdout(), audit.Chain{Rows: chain.Rows, Head: chain.Head, Broken: broken})
	})
	online := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if file == "" {
			return online(cmd, args)
		}
		return verifyExport(cmd, file)
	}
	return cmd
}

func showChain(out io.Writer, chain audit.Chain) error {
	if chain.Broken != "" {
		return fmt.Errorf("the audit log is not whole: %s", client.Printable(chain.Broken))
	}
	_, err := fmt.Fprintf(out, "%s, head %s\n", cli.Plural(int(chain.Rows), "row"), chain.Head)
	return err
}

// verifyExport verifies an export, which may begin in the middle of the log.
func verifyExport(cmd *cobra.Command, file string) error {
	in := cmd.InOrStdin()
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	v := audit.NewVerifier()
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		var row audit.Row
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return fmt.Errorf("%s:%d: it is not a row of the audit log: %w", file, n, err)
		}
		// NB: of a repeated member, other readers may take the other one, and tell "Actor" from "actor".
		var written bytes.Buffer
		again := json.NewEncoder(&written)
		again.SetEscapeHTML(false)
		if err := again.Encode(&row); err != nil || !bytes.Equal(bytes.TrimSuffix(written.Bytes(), []byte{'\n'}), lines.Bytes()) {
			return fmt.Errorf("%s:%d: it is not as troupe audit -o jsonl writes it: it was changed, or has other members", file, n)
		}
		if n == 1 && row.Prev != v.Head {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the export begins behind the row with the hash %s\n", client.Printable(row.Prev))
			v.Head = row.Prev
		}
		if !v.Next(&row) {
			break
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if v.Rows == 0 && v.Broken == "" {
		return fmt.Errorf("%s: it has no rows", file)
	}
	return showChain(cmd.OutOrStdout(), v.Chain)
}
