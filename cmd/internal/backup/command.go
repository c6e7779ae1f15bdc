package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/persistence/backup"
)

// Commands are those below troupe store about backups.
func Commands() []*cobra.Command { return []*cobra.Command{newBackup(), newRestore(), newDrill()} }

// command makes cmd one that works on a home, until it is done or a signal ends it. where names what may be a bucket.
func command(cmd *cobra.Command, where func(args []string) string, do func(ctx context.Context, c *config.Config, args []string) error) *cobra.Command {
	c := config.New()
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := config.CheckBackupTo(where(args)); err != nil {
			return cli.Usage(err)
		}
		c.UsesBucket = isBucket(where(args))
		if err := c.LoadQuiet(); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals()...)
		defer stop()
		err := do(ctx, c, args)
		if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return cli.ErrInterrupted
		}
		return err
	}
	return cmd
}

// progressOn shows how far something is, on a terminal.
func progressOn(cmd *cobra.Command, what string) (show func(done, total int64), hide func()) {
	line, last := cli.NewLiveLine(cmd.ErrOrStderr()), time.Time{}
	return func(done, total int64) {
		if total > 0 && line.IsLive() && time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			line.Say(fmt.Sprintf("%s: %d %% of %s", what, 100*done/total, sizeText(total)))
		}
	}, line.Clear
}

// sizeText is a number of bytes as people read it.
func sizeText(n int64) string {
	const units = "kMGT"
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	value, unit := float64(n)/1000, 0
	for ; value >= 1000 && unit < len(units)-1; unit++ {
		value /= 1000
	}
	return fmt.Sprintf("%.1f %cB", value, units[unit])
}

func momentText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// countMax bounds how long a backup into a target counts history entries: it may be one of many. A server, and
// --every, give it a twentieth of their pause.
const (
	countMax   = 30 * time.Second
	countShare = 20
)

func newBackup() *cobra.Command {
	var to, every, keep string
	var repository bool
	var pause, kept time.Duration
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Back up a home, also while a server runs on it",
		Long: `A backup has one moment of the whole home: the store and the text files, with everything that was acknowledged before
it began. It goes into a new FILE (tar.zst), or with --to into a folder or bucket that keeps many of them: the first one
copies everything, each later one what is new. It is checked after writing, and can be interrupted at any time.`,
		Example: "  troupe store backup --home ./troupe-home backup.tar.zst\n" +
			"  troupe store backup --home ./troupe-home --to /mnt/backups --every 1m --keep 30d",
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			switch {
			case len(args) == 0 && to == "":
				return cli.Usagef("FILE or --to is missing")
			case len(args) > 0 && to != "":
				return cli.Usagef("FILE and --to cannot be combined")
			case to == "" && (every != "" || keep != ""):
				return cli.Usagef("--every and --keep need --to")
			}
			if pause, err = parsePause(every); err != nil {
				return cli.Usagef("--every %w", err)
			}
			if keep != "" {
				if kept, err = cli.ParseDuration(keep); err != nil {
					return cli.Usagef("--keep %w", err)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "folder, or s3://BUCKET/PREFIX, that keeps many backups")
	cmd.Flags().StringVar(&every, "every", "", "go on until a signal, with a pause such as 1m between the beginnings")
	cmd.Flags().StringVar(&keep, "keep", "", "how long a backup is kept after the next one, such as 30d; default: for good")
	cmd.Flags().BoolVar(&repository, "with-repository", false, "with the files of the repository, if they are in the home")
	return command(cmd, func([]string) string { return to }, func(ctx context.Context, c *config.Config, args []string) error {
		if err := checkHome(c); err != nil {
			return err
		}
		run, err := newRun(c, repository)
		if err != nil {
			return err
		}
		show, hide := progressOn(cmd, "backup")
		run.Progress = show
		if len(args) > 0 {
			report, err := run.ToFile(ctx, args[0])
			hide()
			return told(cmd, report, err, args[0])
		}
		t, done, err := openTarget(c, to)
		if err != nil {
			return err
		}
		defer done()
		run.CountMax = countMax
		if pause > 0 {
			run.CountMax = pause / countShare
		}
		for first := true; ; first = false {
			begun := time.Now()
			report, err := run.To(ctx, t, kept)
			hide()
			err = told(cmd, report, err, t.String())
			if pause == 0 || first && err != nil { // a setting is wrong, perhaps
				return err
			}
			if err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "troupe: %v; the next one is tried in %s\n", err, pause)
			}
			if !sleep(ctx, pause-time.Since(begun)) {
				return nil
			}
		}
	})
}

func parsePause(every string) (time.Duration, error) {
	if every == "" {
		return 0, nil
	}
	if err := config.IsSessionTime(every); err != nil {
		return 0, err
	}
	return cli.ParseDuration(every)
}

// sleep is false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// told says what a backup has.
func told(cmd *cobra.Command, r *backup.Report, err error, to string) error {
	if r == nil {
		return err
	}
	for _, left := range r.Left {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "not in the backup: %s is larger than a text file of a home\n", left)
	}
	removed := ""
	if r.Removed > 0 {
		removed = fmt.Sprintf(", %s removed", cli.Plural(r.Removed, "old backup"))
	}
	_, werr := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s in %s, %s, %s new%s\n", momentText(r.Index.Moment), cli.Plural(int(backup.Sum(r.Index.Counts.Instances)), "instance"), to, sizeText(r.Index.Bytes()), sizeText(r.Copied), removed)
	return errors.Join(err, werr)
}

func newRestore() *cobra.Command {
	var at string
	var dataOnly bool
	var moment time.Time
	cmd := &cobra.Command{
		Use:   "restore SOURCE",
		Short: "Bring a backup into an empty home",
		Long: `SOURCE is a FILE, or a folder or bucket of store backup --to. Everything is checked before the command says done.
A restored store sends no webhooks and mails, runs no schedules, gives programs no jobs, and makes no backups of the setting,
until troupe outbox resume, troupe schedule resume --all and troupe job resume, and its bulk jobs are paused: a copy does not
repeat what the original does.
Tokens and passwords stay, sessions end.`,
		Example: "  troupe store restore --home ./restored backup.tar.zst\n" +
			"  troupe store restore --home ./restored /mnt/backups --at 2026-11-30T08:00:00Z",
		PreRunE: func(*cobra.Command, []string) (err error) {
			if at == "" {
				return nil
			}
			if moment, err = time.Parse(time.RFC3339, at); err != nil {
				return cli.Usagef("--at %q: must be a time such as 2026-11-30T08:00:00Z", at)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the newest backup that is not after this time (RFC 3339); default: the newest")
	cmd.Flags().BoolVar(&dataOnly, "data-only", false, "only the store, into a home that has text files and no store")
	return command(cmd, func(args []string) string { return args[0] }, func(ctx context.Context, c *config.Config, args []string) error {
		if err := homedir.AloneAt(ctx, c.Home); err != nil {
			return err
		}
		from, err := openSource(ctx, c, args[0], moment)
		if err != nil {
			return err
		}
		begun := time.Now()
		show, hide := progressOn(cmd, "restore")
		r := &restoring{from: from, source: args[0], home: c.Home, dataOnly: dataOnly, progress: show, log: c.Logger(), rename: os.Rename}
		counts, err := r.restore(ctx)
		hide()
		if err != nil {
			return fmt.Errorf("restore %s: %w", args[0], err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s and %s of %s in %s, verified, after %s\n", momentText(from.Moment),
			cli.Plural(int(backup.Sum(counts.Instances)), "instance"), entries(counts), args[0], c.Home, time.Since(begun).Round(10*time.Millisecond))
		home := cli.ShellWord(c.Home)
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "Webhooks, mails, exports, schedules, jobs and the backups of the setting are paused. When no other copy of this store is in use, start a server on it and say:\n"+
			"  troupe outbox resume --home %s\n  troupe schedule resume --all --home %s\n  troupe job resume --home %s\nWhat was deleted after this moment is back.\n", home, home, home)
		return err
	})
}

func entries(c backup.Counts) string {
	n := backup.Sum(c.History)
	if n == 1 {
		return "1 history entry"
	}
	return fmt.Sprintf("%d history entries", n)
}

func newDrill() *cobra.Command {
	var from string
	var all bool
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Restore the newest backup into a temporary home, and compare it",
		Long: `It restores, verifies and counts as restore does, says how long that took, and removes the temporary home, which is
in $TMPDIR. The exit code is 1 when anything is not as the backup says. The default of --from is the setting backup.to.`,
		Example: "  troupe store drill --from /mnt/backups\n" +
			"  troupe store drill --from /mnt/backups --all",
	}
	cmd.Flags().BoolVar(&all, "all", false, "first read all backups that are kept, and compare them with their checksums")
	cmd.Flags().StringVar(&from, "from", "", "folder, FILE or s3://BUCKET/PREFIX with backups; default: the setting backup.to")
	return command(cmd, func([]string) string { return from }, func(ctx context.Context, c *config.Config, _ []string) error {
		if from == "" {
			if from = c.BackupTo(); from == "" {
				return cli.Usagef("--from is missing, and the home has no setting backup.to")
			}
		}
		if all {
			if err := checkAll(ctx, cmd, c, from); err != nil {
				return fmt.Errorf("drill of %s: %w", from, err)
			}
		}
		b, err := openSource(ctx, c, from, time.Time{})
		if err != nil {
			return err
		}
		dir, err := drillFolder()
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }() // the next drill tries again
		begun := time.Now()
		show, hide := progressOn(cmd, "drill")
		counts, err := (&restoring{from: b, source: from, home: dir, progress: show, log: c.Logger(), rename: os.Rename}).restore(ctx)
		hide()
		if err != nil {
			return fmt.Errorf("drill of %s: %w", from, err)
		}
		counted := "as when it was written"
		if b.Counts.History == nil {
			counted = "which were too many to be counted when it was written"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: restored and verified in %s: %s, %s as when it was written, %s, %s\n", momentText(b.Moment),
			time.Since(begun).Round(10*time.Millisecond), sizeText(b.Bytes()), cli.Plural(int(backup.Sum(counts.Instances)), "instance"), entries(counts), counted)
		return err
	})
}

// checkAll reads every backup of a folder or bucket. A FILE has one, which the drill reads.
func checkAll(ctx context.Context, cmd *cobra.Command, c *config.Config, from string) error {
	if info, err := os.Stat(from); !isBucket(from) && err == nil && !info.IsDir() {
		return nil
	}
	t, done, err := openTarget(c, from)
	if err != nil {
		return err
	}
	defer done()
	n, err := backup.CheckAll(ctx, t)
	if err == nil {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s in %s, each as it was written\n", cli.Plural(n, "backup"), from)
	}
	return err
}

const drillPrefix = "troupe-drill-"

// drillFolder makes a temporary home, and removes those of drills that were killed.
func drillFolder() (string, error) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), drillPrefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		if lock, err := backup.Lock(dir); err == nil { // else it is in use, somebody else's, or gone
			_ = errors.Join(os.RemoveAll(dir), lock.Close()) // the next drill tries again
		}
	}
	return os.MkdirTemp("", drillPrefix)
}
