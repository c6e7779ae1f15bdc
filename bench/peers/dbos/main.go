// Command dbos answers the workflow interface with workflows of DBOS on PostgreSQL: each event
// is one workflow with one transaction step, which updates the row of the instance and inserts
// one of its history. The transactions use the pool of DBOS' own tables, so that the step and
// its record are one commit, which is what its documentation says is cheapest.
//
// PostgreSQL, from Debian's package, runs as a child process on a new cluster, with fsync and
// synchronous_commit on as they are by default. When this program runs as root, the server
// runs as the user postgres, who must be able to reach the folder.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"

	"troupe/bench/peers/leave"
)

var poolSize = flag.Int("pool", 20, "connections to PostgreSQL; 20 are what DBOS opens by default")

// settings of PostgreSQL for a machine with some GB of memory.
var settings = []string{"shared_buffers=1GB", "max_wal_size=4GB", "checkpoint_timeout=15min", "max_connections=300", "listen_addresses="}

const tables = `
CREATE TABLE instances (
	id text PRIMARY KEY, public json NOT NULL, private json NOT NULL, node text NOT NULL, entries int NOT NULL);
CREATE TABLE history (
	instance text, number int, event text NOT NULL, from_node text NOT NULL, to_node text NOT NULL, at timestamptz NOT NULL,
	PRIMARY KEY (instance, number));`

// The statements of the two steps. One statement each: a round trip for each of update and
// insert would cost more.
const (
	insert = `WITH made AS (INSERT INTO instances VALUES ($1, $2, $3, $4, 1))
		INSERT INTO history VALUES ($1, 1, '', '', $4, $5)`
	update = `WITH moved AS (UPDATE instances SET node = $3, private = $4, entries = entries + 1 WHERE id = $1 AND node = $2 RETURNING public, entries),
		added AS (INSERT INTO history SELECT $1, entries, $5, $2, $3, $6 FROM moved)
		SELECT public, entries FROM moved`
)

func main() { os.Exit(leave.Main(open)) }

// peer runs the workflows.
type peer struct {
	dbos   dbos.Context
	source *dbos.DataSource
}

// created and sent are the inputs of the two workflows.
type (
	created struct {
		ID     string
		Public json.RawMessage
		At     time.Time
	}
	sent struct {
		ID    string
		Event leave.Event
	}
)

// Create implements leave.Peer.
func (p *peer) Create(_ context.Context, id string, public json.RawMessage, at time.Time) (leave.Record, error) {
	return run(p, p.create, created{id, public, at})
}

// Send implements leave.Peer.
func (p *peer) Send(_ context.Context, id string, e leave.Event) (leave.Record, error) {
	return run(p, p.send, sent{id, e})
}

func run[I any](p *peer, work dbos.Workflow[I, leave.Record], input I) (leave.Record, error) {
	handle, err := dbos.RunWorkflow(p.dbos, work, input)
	if err != nil {
		return leave.Record{}, err
	}
	return handle.GetResult()
}

// create is the workflow that makes an instance.
func (p *peer) create(ctx dbos.Context, c created) (leave.Record, error) {
	return dbos.RunAsTransaction(ctx, p.source, func(ctx context.Context, tx dbos.Tx) (leave.Record, error) {
		record, entry := leave.New(c.Public, c.At)
		_, err := tx.Exec(ctx, insert, c.ID, record.Public, record.Private, record.Node, entry.At)
		return record, err
	})
}

// send is the workflow of an event.
func (p *peer) send(ctx dbos.Context, s sent) (leave.Record, error) {
	from, to, err := s.Event.Move()
	if err != nil {
		return leave.Record{}, err
	}
	return dbos.RunAsTransaction(ctx, p.source, func(ctx context.Context, tx dbos.Tx) (leave.Record, error) {
		record := leave.Record{Private: s.Event.Data, Node: to}
		err := tx.QueryRow(ctx, update, s.ID, from, to, s.Event.Data, s.Event.Name, s.Event.At).Scan(&record.Public, &record.Entries)
		if errors.Is(err, dbos.ErrNoRows) {
			err = leave.ErrRefused
		}
		return record, err
	})
}

// open makes a cluster, starts PostgreSQL and launches DBOS.
func open(ctx context.Context, dir string) (leave.Peer, func(), error) {
	url, stopServer, err := startServer(ctx, dir)
	if err != nil {
		return nil, stopServer, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, stopServer, err
	}
	config.MaxConns = int32(*poolSize)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, stopServer, err
	}
	stop := func() {
		pool.Close()
		stopServer()
	}
	if err := leave.Ready(ctx, pool.Ping); err != nil {
		return nil, stop, err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return nil, stop, err
	}
	p := &peer{}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if p.dbos, err = dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{AppName: "leave", SystemDBPool: pool, Logger: quiet}); err != nil {
		return nil, stop, err
	}
	if p.source, err = dbos.NewDataSource(p.dbos, pool); err != nil {
		return nil, stop, err
	}
	dbos.RegisterWorkflow(p.dbos, p.create)
	dbos.RegisterWorkflow(p.dbos, p.send)
	if err := dbos.Launch(p.dbos); err != nil {
		return nil, stop, err
	}
	return p, func() {
		if err := dbos.Shutdown(p.dbos, 5*time.Second); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		stop()
	}, nil
}

// startServer makes a cluster in dir and starts PostgreSQL on it, with a socket there.
func startServer(ctx context.Context, dir string) (url string, stop func(), err error) {
	folder, err := programs()
	if err != nil {
		return "", nil, err
	}
	home := filepath.Join(dir, "postgres")
	if err := os.Mkdir(home, 0o700); err != nil {
		return "", nil, err
	}
	var as *syscall.SysProcAttr
	if os.Getuid() == 0 {
		if as, err = postgres(home); err != nil {
			return "", nil, err
		}
	}
	data := filepath.Join(home, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(folder, "initdb"), "--pgdata", data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8")
	initdb.Dir, initdb.SysProcAttr = home, as
	if text, err := initdb.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("initdb: %w\n%s", err, text)
	}
	server := exec.Command(filepath.Join(folder, "postgres"), "-D", data, "-k", home)
	for _, s := range settings {
		server.Args = append(server.Args, "-c", s)
	}
	server.Dir, server.SysProcAttr = home, as
	stop, err = leave.StartServer(server)
	return "postgres:///postgres?user=postgres&host=" + home, stop, err
}

// programs returns the folder of PostgreSQL's newest programs.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		return "", errors.New("there is no PostgreSQL in /usr/lib/postgresql")
	}
	return found[len(found)-1], nil
}

// postgres gives a folder to the user postgres and returns what makes a process theirs.
func postgres(folder string) (*syscall.SysProcAttr, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err, err2, os.Chown(folder, uid, gid)); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}
