package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/audit"
	"troupe/actors/inventory"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/client"
	"troupe/persistence"
	"troupe/persistence/damage"
	"troupe/persistence/key"
)

// finding is a line of the result: a damage, or at the end what was read.
type finding struct {
	Damage string       `json:"damage,omitempty"`
	Report *whatWasRead `json:"report,omitempty"`
}

type whatWasRead struct {
	Tables     int    `json:"tables"`
	TableBytes int64  `json:"tableBytes"`
	Damages    int    `json:"damages"`
	OfNode     string `json:"ofNode,omitempty"`
	inventory.Report
}

// A check that is more than these has its place in use.
var verify = &tool{name: "verify", use: func(ctx context.Context, j *job) error {
	r := &whatWasRead{}
	var failed error
	tell := func(line string) {
		r.Damages++
		if err := j.line(finding{Damage: line}); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	j.say("reading all tables and logs")
	files, err := j.Store.VerifySlowly(ctx, j.pace)
	r.Tables, r.TableBytes = files.Tables, files.TableBytes
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, line := range linesOf(err) {
		tell(line)
	}
	r.Report, err = inventory.Verify(ctx, &inventory.Options{Store: j.Store, Catalog: j.Catalog, Pace: j.pace, Damage: tell, Say: j.say})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	if err := j.Catalog.Readable(); err != nil {
		tell("stored definitions: " + err.Error())
	}
	if j.Store.Standalone() || j.Store.Replica(key.Meta) != nil {
		chain, err := audit.Verify(j.Store.Scan)
		if err != nil {
			return err
		}
		if chain.Broken != "" {
			tell("audit log: " + chain.Broken)
		}
	}
	r.OfNode = j.ofNode(r.Shards)
	return j.line(finding{Report: r})
}}

// linesOf takes an error apart of which each line is a damage.
func linesOf(err error) (lines []string) {
	if err == nil {
		return nil
	}
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), persistence.ErrDamaged.Error()+": ")
		lines = append(lines, strings.TrimSuffix(line, " (nothing was changed)"))
	}
	return lines
}

func newVerify() *cobra.Command {
	return command(&cobra.Command{
		Use: "verify", Short: "Check everything that the store has",
		Long: `It reads all tables, the live log and the MANIFEST, and compares them with what was durable. Then it checks that each history has
all its entries and ends where its instance is, that indexes, worklists, timers and counters have what follows from the
instances and nothing else, that a history gives the data of its instance, where it has all that the data came from, and
that the audit log is an unbroken chain.

While a server runs on the home, that one reads its own store, slowly enough for its callers. Each damage is a line on
standard output, and the exit code is 1 then. Nothing is changed.`,
		Example: "  troupe store verify --home ./troupe-home",
	}, verify, func(c *call) error {
		c.line = c.showFinding
		c.refused = c.findDamage
		return nil
	})
}

func (c *call) showFinding(text json.RawMessage) error {
	var f finding
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if f.Report == nil {
		return c.damaged(f.Damage)
	}
	r := f.Report
	_, err := fmt.Fprintf(c.OutOrStdout(), "read %s (%s), %d rows, %d instances with %d history entries\n", cli.Plural(r.Tables, "table"), cli.SizeText(r.TableBytes), r.Rows, r.Instances, r.Entries)
	if err == nil && r.Instances > 0 {
		_, err = fmt.Fprintf(c.OutOrStdout(), "every history gives the states of its instance; %d also give the data, %d did not keep all that their events brought\n", r.Replayed, r.NotReplayed)
	}
	if err == nil && r.OfNode != "" {
		_, err = fmt.Fprintln(c.OutOrStdout(), r.OfNode)
	}
	if err != nil || r.Damages == 0 {
		return err
	}
	return fmt.Errorf("%s: %d of %d instances are whole, and `troupe store export` writes those", cli.Plural(r.Damages, "damage"), r.Instances-r.Damaged, r.Instances)
}

func (c *call) damaged(what string) error {
	_, err := fmt.Fprintf(c.OutOrStdout(), "damaged: %s\n", client.Printable(what))
	return err
}

// findDamage says what is wrong with a store that does not open for that.
func (c *call) findDamage(ctx context.Context, refused error) error {
	if !errors.Is(refused, persistence.ErrDamaged) && !errors.Is(refused, persistence.ErrCorrupt) {
		return refused
	}
	found, tables, err := damage.Find(ctx, homedir.Data(c.config.Home))
	if err != nil {
		return errors.Join(refused, err)
	}
	if len(found) == 0 {
		return refused
	}
	spoilt := 0
	for _, one := range found {
		for _, line := range linesOf(one) {
			if err := c.damaged(line); err != nil {
				return err
			}
			if strings.Contains(line, ".sst:") {
				spoilt++
			}
		}
	}
	return fmt.Errorf("%s, so the store does not open; %d of %d tables can be read. Restore the whole of %s from a backup",
		cli.Plural(len(found), "damage"), tables-spoilt, tables, homedir.Data(c.config.Home))
}
