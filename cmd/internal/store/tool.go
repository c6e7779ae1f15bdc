// Package store has the commands that read all of a store: verify, stats, compact, export and import. Each is a tool, which a
// running server uses on its own store when the command asks it over the home's admin.sock, and which the command uses on a
// store that it opens where no server runs.
package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/time/rate"

	"troupe/actors/catalog"
	"troupe/actors/formportal"
	"troupe/actors/transfer"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/statemachine"
)

// Commands are those below troupe store.
func Commands() []*cobra.Command {
	return []*cobra.Command{newVerify(), newStats(), newCompact(), newExport(), newImport()}
}

// Open is a store with what is published in it.
type Open struct {
	Store   *persistence.Store
	Catalog *catalog.Catalog
	Running transfer.Running // nil where nothing runs
}

// Tools are those of a server.
func (o *Open) Tools() map[string]admin.Tool {
	tools := map[string]admin.Tool{}
	for _, t := range []*tool{verify, stats, compact, export, importing} {
		tools[t.name] = func(ctx context.Context, in io.Reader, line func(any) error, say func(string)) error {
			return t.use(ctx, &job{Open: o, in: in, line: line, say: say, pace: slowly()})
		}
	}
	return tools
}

// tool is something that is done with a store.
type tool struct {
	name   string
	writes bool // it changes the store
	use    func(ctx context.Context, j *job) error
}

// job is one use of a tool.
type job struct {
	*Open
	in   io.Reader
	line func(any) error       // has a part of the result
	say  func(progress string) // has what people see meanwhile
	pace func(ctx context.Context, bytes int) error
}

// servedPerSecond bounds what a tool reads of the store of a server, beside what that does.
const servedPerSecond = 32 << 20

func slowly() func(context.Context, int) error {
	limit := rate.NewLimiter(servedPerSecond, servedPerSecond/4)
	return func(ctx context.Context, bytes int) error {
		for ; bytes > limit.Burst(); bytes -= limit.Burst() {
			if err := limit.WaitN(ctx, limit.Burst()); err != nil {
				return err
			}
		}
		return limit.WaitN(ctx, bytes)
	}
}

func atOnce(ctx context.Context, _ int) error { return ctx.Err() }

// call is a command that uses a tool.
type call struct {
	*cobra.Command
	config *config.Config
	tool   *tool
	in     func(args []string) (io.ReadCloser, error) // nil: the tool reads nothing
	// line is told of the parts of the result.
	line func(text json.RawMessage) error
	// refused may say more of a store that does not open, and returns the error of the command.
	refused func(ctx context.Context, err error) error
	// after is called when a store was used that the command has opened, and is closed. Nil: nothing is left to do.
	after func() error
}

// command gives a command that uses a tool its flag and what it does. begin is called before anything is done, and sets what
// the call has beside.
func command(cmd *cobra.Command, of *tool, begin func(c *call) error) *cobra.Command {
	c := config.New()
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.LoadQuiet(); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals()...)
		defer stop()
		it := &call{Command: cmd, config: c, tool: of}
		if err := begin(it); err != nil {
			return err
		}
		var in io.Reader
		if it.in != nil {
			file, err := it.in(args)
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }() // read-only: nothing to lose
			in = io.NopCloser(file)             // NB: a request closes its body
		}
		err := it.run(ctx, in)
		if err != nil && ctx.Err() != nil {
			return cli.ErrInterrupted
		}
		return err
	}
	return cmd
}

func (c *call) run(ctx context.Context, in io.Reader) error {
	live := cli.NewLiveLine(c.ErrOrStderr())
	defer live.Clear()
	server, err := homedir.Dial(ctx, c.config.Home)
	if err == nil {
		return server.RunTool(ctx, c.tool.name, in, func(text json.RawMessage) error {
			live.Clear()
			return c.line(text)
		}, live.Say)
	}
	if !errors.Is(err, admin.ErrNoServer) {
		return err
	}
	if err := homedir.Demand(c.config.Home); err != nil {
		return err
	}
	open, end, err := OpenHome(c.config, c.tool.writes)
	if err != nil && c.refused != nil {
		return c.refused(ctx, err)
	}
	if err != nil {
		return err
	}
	err = c.tool.use(ctx, &job{Open: open, in: in, say: live.Say, pace: atOnce, line: func(value any) error {
		var text bytes.Buffer
		to := json.NewEncoder(&text)
		to.SetEscapeHTML(false) // NB: as a server does, so that documents stay byte for byte
		if err := to.Encode(value); err != nil {
			return err
		}
		live.Clear()
		return c.line(text.Bytes())
	}})
	if err = errors.Join(err, end()); err != nil || c.after == nil {
		return err
	}
	return c.after()
}

// OpenHome opens the store of a home on which no server runs.
func OpenHome(c *config.Config, writes bool) (o *Open, end func() error, err error) {
	var store *persistence.Store
	if writes {
		store, err = c.OpenStore(c.Logger())
	} else {
		options := c.StoreOptions(zerolog.Nop())            // NB: its warnings are about writing
		options.ReadOnly, options.VerifyBytesMax = true, -1 // NB: what is damaged in tables fails the reads of it alone
		if store, err = persistence.Open(homedir.Data(c.Home), options); err != nil {
			err = c.WithAdvice(err)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	o = &Open{Store: store}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err == nil {
		o.Catalog, err = catalog.Open(catalog.Options{Store: store, Parser: parser, Log: zerolog.Nop()})
	}
	if err == nil {
		err = formportal.AddPlainWorkflow(o.Catalog, parser)
	}
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return o, store.Close, nil
}

// ofNode says of which part of a cluster's data a result is; "" on a standalone server.
func (j *job) ofNode(shards int) string {
	all := len(j.Store.Numbered())
	if j.Store.Standalone() || shards == all {
		return ""
	}
	return fmt.Sprintf("this node has %d of the %d shards of its cluster: the others are not counted", shards, all)
}
