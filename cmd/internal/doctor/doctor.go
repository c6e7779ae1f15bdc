// Package doctor looks at the machine below a home: what would make the server slow, refuse requests or lose data is
// named with what to do about it. It changes nothing.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/persistence"
	"troupe/statemachine/document"
)

// Finding is what one look has shown.
type Finding struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do, unless all is well
}

// Result says how bad it is.
type Result string

// Results. A failure makes the command fail.
const (
	OK      Result = "ok"
	Warning Result = "warning"
	Failure Result = "failure"
)

// Command is troupe doctor.
func Command() *cobra.Command {
	c := config.New()
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for problems of the machine and the settings of a home",
		Long: `Looks at settings, the store, disk space, the file system and the time it takes to make a write durable, at the clock,
memory, open files and ports. Changes nothing; a small file in the home is written and removed. The exit code is 1 if
something would keep the server from working.`,
		Example: "  troupe doctor --home ./troupe-home",
	}
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	out := cli.AddOutput(cmd, cli.AnyForm...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loadErr := c.LoadQuiet()
		if err := homedir.Demand(c.Home); err != nil {
			return err
		}
		findings := examine(cmd.Context(), c, loadErr)
		if err := show(out, findings); err != nil {
			return err
		}
		bad := slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Result != Failure })
		if len(bad) > 0 {
			return errors.New(cli.Plural(len(bad), "failure"))
		}
		return nil
	}
	return cmd
}

func show(out *cli.Output, findings []Finding) error {
	if out.Form != cli.FormTable {
		return out.Marshaled(json.Marshal(map[string]any{"findings": findings}))
	}
	rows := [][]string{{"CHECK", "RESULT", "FOUND"}}
	for _, f := range findings {
		rows = append(rows, []string{f.Check, string(f.Result), f.Found})
		if f.Advice != "" {
			rows = append(rows, []string{"", "", "→ " + f.Advice})
		}
	}
	return out.Table(rows)
}

func examine(ctx context.Context, c *config.Config, loadErr error) []Finding {
	data := homedir.Data(c.Home)
	if !homedir.Exists(data) {
		data = c.Home
	}
	findings := []Finding{settings(loadErr), files(c.Home)}
	if loadErr != nil {
		return findings // its values mean nothing
	}
	served := homedir.IsServed(ctx, c.Home)
	return append(findings, storeOf(c, served), disk(data, c.Store.FreeBytesMin), fileSystem(data), syncs(data), clock(),
		memory(c.Workflow.AwakeBytesMax+c.Store.CacheBytes+2*c.Store.MemTableBytes), openFiles(c.Gateway.ConnectionsMax),
		port(c, "listen", c.Gateway.Addr, served), port(c, "admin", c.Admin, served), port(c, "cluster.listen", c.Cluster.Listen, served))
}

// storeOf opens the store to read it, as a start does.
func storeOf(c *config.Config, served bool) Finding {
	switch {
	case served:
		return Finding{Check: "store", Result: OK, Found: "open in the running server of this home"}
	case !homedir.Exists(homedir.Data(c.Home)) && !homedir.Exists(filepath.Join(c.Home, homedir.StoreIDFile)):
		return Finding{Check: "store", Result: OK, Found: "none: the first start makes it"}
	}
	options := c.StoreOptions(zerolog.Nop())
	options.ReadOnly, options.VerifyBytesMax = true, -1
	store, err := persistence.Open(homedir.Data(c.Home), options)
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		return Finding{"store", Failure, c.WithAdvice(err).Error(), "the server would not start"}
	}
	return Finding{Check: "store", Result: OK, Found: "can be opened; troupe store verify looks at everything in it"}
}

func settings(loadErr error) Finding {
	if loadErr == nil {
		return Finding{Check: "settings", Result: OK, Found: "valid"}
	}
	return Finding{"settings", Failure, strings.ReplaceAll(loadErr.Error(), "\n", "; "), "correct " + homedir.SettingsFile + ", the environment or the flag that it names"}
}

func files(home string) Finding {
	if !homedir.HasText(home) {
		return Finding{Check: "files", Result: OK, Found: "none: a node has those of its cluster"}
	}
	_, err := homedir.Load(home)
	var faults document.Faults
	switch {
	case err == nil:
		return Finding{Check: "files", Result: OK, Found: "valid"}
	case errors.As(err, &faults):
		return Finding{"files", Failure, cli.Plural(len(faults), "problem"), "troupe check --home " + cli.ShellWord(home) + " lists them"}
	}
	return Finding{"files", Failure, err.Error(), "make the files readable for the user that runs the server"}
}

func disk(dir string, least int64) Finding {
	free, err := freeBytes(dir)
	f := Finding{Check: "disk", Result: OK, Found: cli.SizeText(free) + " free"}
	switch {
	case err != nil:
		return Finding{"disk", Warning, err.Error(), "check by hand that there is room"}
	case free < least:
		f.Result, f.Advice = Failure, "writes are refused below "+cli.SizeText(least)+" (freeBytesMin): free some space"
	case free < 4*least:
		f.Result, f.Advice = Warning, "writes are refused below "+cli.SizeText(least)+" (freeBytesMin): make room before that"
	}
	return f
}

func fileSystem(dir string) Finding {
	name, advice := fileSystemOf(dir)
	f := Finding{Check: "file system", Result: OK, Found: cmp.Or(name, "unknown"), Advice: advice}
	if advice != "" {
		f.Result = Warning
	}
	return f
}

const (
	syncTries  = 50
	syncBytes  = 4 << 10
	syncTimeMx = 5 * time.Second
	slowSync   = 10 * time.Millisecond
)

// syncs measures what every commit waits for: a write of a block and its sync.
func syncs(dir string) Finding {
	took, err := measureSyncs(dir)
	if err != nil {
		return Finding{"sync", Failure, err.Error(), "the user that runs the server must be able to write there"}
	}
	slices.Sort(took)
	middle, most := took[len(took)/2], took[len(took)-1]
	f := Finding{Check: "sync", Result: OK, Found: fmt.Sprintf("a durable write takes %v, at most %v in %d", middle.Round(10*time.Microsecond), most.Round(10*time.Microsecond), len(took))}
	if middle > slowSync {
		f.Result, f.Advice = Warning, "every answer waits for one: use a local SSD, ideally with power-loss protection"
	}
	return f
}

func measureSyncs(dir string) (took []time.Duration, err error) {
	file, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, syncBytes)
	for began := time.Now(); len(took) < syncTries && (len(took) == 0 || time.Since(began) < syncTimeMx); {
		at := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(at))
	}
	return took, nil
}

func clock() Finding {
	switch synchronized, err := isClockSynchronized(); {
	case err != nil:
		return Finding{Check: "clock", Result: OK, Found: "not known: " + err.Error()}
	case !synchronized:
		return Finding{"clock", Warning, "not synchronized", "timers and histories use this clock: run an NTP client such as chrony or systemd-timesyncd"}
	}
	return Finding{Check: "clock", Result: OK, Found: "synchronized"}
}

func memory(needed int64) Finding {
	limit, source := memoryLimit()
	f := Finding{Check: "memory", Result: OK, Found: fmt.Sprintf("%s (%s), %s of it for instances and the store", cli.SizeText(limit), source, cli.SizeText(needed))}
	switch {
	case limit <= 0:
		f.Found = "not known"
	case needed > limit/4*3:
		f.Result, f.Advice = Failure, "lower awakeBytesMax or cacheBytes: above three quarters the system may end the process"
	case needed > limit/2:
		f.Result, f.Advice = Warning, "lower awakeBytesMax or cacheBytes, or set GOMEMLIMIT a little below the limit"
	}
	return f
}

// storeFiles is about what the store keeps open, with some for everything else.
const storeFiles = 2048

func openFiles(connections int) Finding {
	limit, err := openFilesMax()
	f := Finding{Check: "open files", Result: OK, Found: fmt.Sprintf("%d allowed", limit)}
	switch {
	case err != nil:
		f.Found = "not known: " + err.Error()
	case limit < uint64(connections)+storeFiles:
		f.Result, f.Advice = Warning, fmt.Sprintf("%d connections (connectionsMax) need about %d: raise the limit (ulimit -n, LimitNOFILE) or lower connectionsMax", connections, connections+storeFiles)
	}
	return f
}

// port looks whether the server can listen there. A running one may have been started with another address.
func port(c *config.Config, setting, address string, served bool) Finding {
	if address == "" {
		return Finding{Check: setting, Result: OK, Found: "off"}
	}
	l, err := net.Listen("tcp", address)
	if err == nil {
		err = l.Close()
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	switch {
	case err == nil && served:
		return Finding{Check: setting, Result: OK, Found: address + ": free; the running server of this home has another address"}
	case err == nil:
		return Finding{Check: setting, Result: OK, Found: address + ": free"}
	case served:
		return Finding{Check: setting, Result: OK, Found: address + ": in use, by the running server of this home unless it was started with another address"}
	case setting == "admin" && !c.IsChosen(setting):
		return Finding{setting, Warning, address + ": " + err.Error(), "metrics would be off: choose another address (admin)"}
	}
	return Finding{setting, Failure, address + ": " + err.Error(), "end what listens there, or give another address (" + config.KeyName(setting) + ")"}
}
