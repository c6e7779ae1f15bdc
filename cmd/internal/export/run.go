// Package export has the commands of exports: run follows a service from outside, list shows those of its settings.
package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors/export"
	"troupe/actors/export/file"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/client"
)

// Commands are those below troupe export.
func Commands() []*cobra.Command { return []*cobra.Command{newRun(), newList()} }

func newRun() *cobra.Command {
	var to, format, user, workflow, position, secretFile string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Export the history of instances, and follow it (needs mod-workflows)",
		Long: "Writes each history entry to " + config.ExportForms + ", at least once, those of an\n" +
			"instance in their order, until it is interrupted. It begins with the oldest entry that the service keeps, and goes on\n" +
			"where it ended: the file of --position says where. With a token it exports what its user may read, with --home\n" +
			"everything. For s3:// the settings of the object store apply, from the environment and the home.\n\n" +
			"A server exports in the background with the setting exports. To export the definition of a workflow that is called run,\n" +
			"write `troupe export --to scxml -- run`.",
		Example: "  troupe export run --to /srv/lake --workflow leave-request --format parquet\n" +
			"  troupe export run --to https://warehouse.example.com/rows --home ./troupe-home",
	}
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "where to (required): "+config.ExportForms)
	f.StringVar(&format, "format", "", "format of the files of a folder or bucket: "+config.ExportFormats)
	cli.OneOf(cmd, "format", string(file.JSONL), string(file.Parquet))
	f.StringVar(&workflow, "workflow", "", "export only instances of this workflow")
	f.StringVar(&position, "position", "", "file that keeps how far the export is (default: .position in the folder of --to, else a file for each --to beside the contexts file)")
	f.StringVar(&user, "user", "", "user at Kafka or NATS; --secret-file has the password")
	f.StringVar(&secretFile, "secret-file", "", "file with the password of --user, or with the secret that signs requests to https://, as of webhooks")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if to == "" {
			return cli.Usagef("--to is required: " + config.ExportForms)
		}
		o := config.ExportOptions{To: to, Format: format, User: user, Allow: everywhere}
		if secretFile != "" {
			text, err := cli.ReadInputFile(secretFile)
			if o.Secret = strings.TrimSpace(string(text)); err == nil && o.Secret == "" {
				err = fmt.Errorf("%s is empty", secretFile)
			}
			if err != nil {
				return fmt.Errorf("--secret-file: %w", err)
			}
		}
		target, err := openTarget(at.Home, o)
		if err != nil {
			return err
		}
		defer func() { _ = target.Close() }() // what it has confirmed it has
		service, err := serviceOf(at)
		if err != nil {
			return err
		}
		r := &run{target: target, workflow: workflow, complaints: cmd.ErrOrStderr()}
		if r.position, err = openPosition(position, to, service, workflow); err != nil {
			return err
		}
		if r.client, err = at.Client(0); err != nil {
			return err
		}
		defer r.client.Close()
		ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals()...)
		defer stop()
		err = r.follow(ctx)
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "exported %s to %s\n", cli.Plural(r.exported, "row"), client.Printable(target.String()))
		return err
	}
	return cmd
}

// everywhere: who runs the command chooses the address, as with any other client.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

func openTarget(home string, o config.ExportOptions) (export.Target, error) {
	c := config.New()
	if c.UsesBucket = strings.HasPrefix(o.To, config.BucketScheme); c.UsesBucket {
		if home != "" {
			if err := c.Flags.Set("home", home); err != nil {
				return nil, err
			}
		}
		if err := c.LoadQuiet(); err != nil {
			return nil, err
		}
	}
	target, err := c.ExportTarget(o, zerolog.Nop())
	if err != nil {
		return nil, cli.Usagef("--to: %w", err)
	}
	return target, nil
}

func serviceOf(at *connect.Connection) (string, error) {
	if at.Home != "" {
		return filepath.Abs(at.Home)
	}
	address, _, err := at.Resolve()
	return address, err
}

// run is one export on its way.
type run struct {
	client     *client.Client
	target     export.Target
	position   *position
	workflow   string
	complaints io.Writer

	next     string // behind what was gathered
	rows     []export.Row
	bytes    int
	first    time.Time // when the first of them was gathered
	exported int
	works    bool // something has been confirmed: what fails then is tried again
}

const (
	waitMax  = 30 * time.Second
	lastMax  = 10 * time.Second // how long the last rows may take after a signal
	againMax = time.Minute
)

func (r *run) follow(ctx context.Context) error {
	again := time.Duration(0)
	for r.next = r.position.Next; ctx.Err() == nil; {
		err := r.step(ctx)
		if err == nil {
			again = 0
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if !r.works || isFinal(err) {
			return err
		}
		if again == 0 {
			_, _ = fmt.Fprintf(r.complaints, "troupe: %s; it is tried again\n", client.Printable(err.Error()))
		}
		again = min(max(2*again, time.Second), againMax)
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
	if len(r.rows) == 0 {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMax)
	defer cancel()
	return r.write(last)
}

// isFinal says that asking once more would end in the same way.
func isFinal(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status < 500 && refused.Status != 429
}

// step reads a page, and writes when there is enough.
func (r *run) step(ctx context.Context) error {
	g, wait := r.target.Gathers(), waitMax
	if len(r.rows) > 0 {
		wait = time.Until(r.first.Add(g.For))
		if wait <= 0 || r.bytes >= g.Bytes {
			return r.write(ctx)
		}
		wait = min(wait.Truncate(time.Second)+time.Second, waitMax)
	}
	page, err := r.client.Export(ctx, client.ChangesRequest{WorkflowID: r.workflow, Since: r.next, Limit: 1000, Wait: wait})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == 410 {
		_, _ = fmt.Fprintln(r.complaints, "troupe: the service no longer has entries that were not exported: they are missing in the target; the export goes on with the oldest that it has")
		r.gather(export.Gap(time.Now()))
		r.next = "0"
		return nil
	}
	if err != nil {
		return connect.Explain(err) // NB: what it says is of the service, not of the target
	}
	r.works = true
	for _, text := range page.Items {
		row, err := export.ParseRow(text)
		if err != nil {
			return fmt.Errorf("%w: %w", client.ErrProtocol, err)
		}
		r.gather(row)
	}
	r.next = page.Next
	if len(r.rows) == 0 && len(page.Items) == 0 && r.next != r.position.Next {
		return r.position.move(r.next)
	}
	return nil
}

func (r *run) gather(row export.Row) {
	if len(r.rows) == 0 {
		r.first = time.Now()
	}
	r.rows = append(r.rows, row)
	r.bytes += len(row.Text)
}

func (r *run) write(ctx context.Context) error {
	if err := r.target.Write(ctx, r.rows); err != nil {
		r.works = r.exported > 0
		return fmt.Errorf("export to %s: %w", r.target, err)
	}
	r.exported += len(r.rows)
	r.rows, r.bytes = nil, 0
	return r.position.move(r.next)
}

// position is how far an export is, in a file.
type position struct {
	path     string
	Service  string `json:"service"`
	Workflow string `json:"workflow,omitempty"`
	Next     string `json:"next"`
}

// openPosition reads the file; a missing one is at the beginning.
func openPosition(path, to, service, workflow string) (*position, error) {
	if path == "" {
		var err error
		if path, err = positionPath(to, service, workflow); err != nil {
			return nil, err
		}
	}
	p := &position{path: path, Service: service, Workflow: workflow, Next: "0"}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	var kept position
	if err := json.Unmarshal(text, &kept); err != nil || kept.Next == "" {
		return nil, fmt.Errorf("%s is not the position of an export; give another --position", path)
	}
	if kept.Service != service || kept.Workflow != workflow {
		return nil, fmt.Errorf("%s is the position of another export, of %s; use another --to or --position", path, strings.TrimSpace(kept.Service+" "+kept.Workflow))
	}
	p.Next = kept.Next
	return p, nil
}

func positionPath(to, service, workflow string) (string, error) {
	if !strings.Contains(to, "://") {
		return filepath.Join(to, ".position"), nil
	}
	folder, err := connect.Folder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(to + "\n" + service + "\n" + workflow))
	return filepath.Join(folder, "exports", hex.EncodeToString(sum[:8])+".json"), nil
}

// move keeps that everything up to next is exported.
func (p *position) move(next string) error {
	p.Next = next
	text, err := json.Marshal(p)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(p.path), 0o750)
	}
	if err == nil {
		err = homedir.WriteWhole(p.path, append(text, '\n'), 0o600)
	}
	return err
}
