// Command restate answers the workflow interface with a virtual object of Restate for each
// instance. The server, from npm, runs as a child process with one node that has all roles.
//
// A default of the server that matters here: it syncs its log before it answers
// (bifrost.local.rocksdb-disable-wal-fsync is false). What this program sets for a small
// machine stands in settings; variables of the environment with these names win.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/restatedev/sdk-go/server"

	"troupe/bench/peers/leave"
)

// service is the name of the virtual object.
const service = "LeaveRequest"

// The keys of an object's state.
const (
	recordKey = "record"
	entryKey  = "entry/%06d" // one for each entry, so that an event writes one
)

// settings are what differs from the server's defaults, as variables of its environment.
var settings = map[string]string{
	"RESTATE_DEFAULT_NUM_PARTITIONS":    "1", // of 24; each is a log and a state machine of its own
	"RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "1GiB",
	"RESTATE_LOG_FILTER":                "warn",
	"RESTATE_DISABLE_TELEMETRY":         "true",
	"RESTATE_LISTEN_MODE":               "tcp",
}

func main() { os.Exit(leave.Main(open)) }

// peer is the client of the object.
type peer struct{ client *ingress.Client }

// created is the input of the handler create.
type created struct {
	Public json.RawMessage `json:"svcPublic"`
	At     time.Time       `json:"at"`
}

// Create implements leave.Peer.
func (p *peer) Create(ctx context.Context, id string, public json.RawMessage, at time.Time) (leave.Record, error) {
	return ingress.Object[created, leave.Record](p.client, service, id, "create").Request(ctx, created{public, at})
}

// Send implements leave.Peer.
func (p *peer) Send(ctx context.Context, id string, e leave.Event) (leave.Record, error) {
	record, err := ingress.Object[leave.Event, leave.Record](p.client, service, id, "send").Request(ctx, e)
	var refused ingress.Error
	if errors.As(err, &refused) && refused.Code() == http.StatusConflict {
		err = leave.ErrRefused
	}
	return record, err
}

// create is the handler that makes an instance.
func create(ctx restate.ObjectContext, c created) (leave.Record, error) {
	record, entry := leave.New(c.Public, c.At)
	keep(ctx, record, entry)
	return record, nil
}

// send is the handler of an event.
func send(ctx restate.ObjectContext, e leave.Event) (leave.Record, error) {
	record, err := restate.Get[leave.Record](ctx, recordKey) // of a missing instance: zero, where no event is possible
	if err != nil {
		return record, err
	}
	entry, fault := record.Apply(e)
	if fault != nil {
		return record, restate.ToTerminalError(fault, restate.WithErrorCode(http.StatusConflict))
	}
	keep(ctx, record, entry)
	return record, nil
}

func keep(ctx restate.ObjectContext, record leave.Record, entry leave.Entry) {
	restate.Set(ctx, recordKey, record)
	restate.Set(ctx, fmt.Sprintf(entryKey, record.Entries), entry)
}

// open starts the server, serves the handlers and makes them known.
func open(ctx context.Context, dir string) (leave.Peer, func(), error) {
	program, err := leave.Tool("node_modules/@restatedev/restate-server-*/bin/restate-server")
	if err != nil {
		return nil, nil, err
	}
	var addrs [4]string // of the ingress, the admin interface, the node and the handlers
	for i := range addrs {
		if addrs[i], err = leave.FreeAddr(); err != nil {
			return nil, nil, err
		}
	}
	cmd := exec.Command(program, "--no-logo", "--node-name", "one", "--base-dir", filepath.Join(dir, "restate"))
	cmd.Env = environment(map[string]string{
		"RESTATE_INGRESS__BIND_ADDRESS": addrs[0],
		"RESTATE_ADMIN__BIND_ADDRESS":   addrs[1],
		"RESTATE_BIND_ADDRESS":          addrs[2],
	})
	stop, err := leave.StartServer(cmd)
	if err != nil {
		return nil, nil, err
	}
	go serveHandlers(ctx, addrs[3])
	err = leave.Ready(ctx, func(ctx context.Context) error {
		return leave.Call(ctx, http.MethodPost, "http://"+addrs[1]+"/deployments", strings.NewReader(`{"uri":"http://`+addrs[3]+`"}`))
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1 << 10, DisableCompression: true}}
	p := &peer{ingress.NewClient("http://"+addrs[0], ingress.WithHttpClient(client))}
	if err == nil { // the first call waits for the partitions
		err = leave.Ready(ctx, func(ctx context.Context) error {
			_, err := p.Create(ctx, "first", json.RawMessage("{}"), time.Now())
			return err
		})
	}
	return p, stop, err
}

// environment is that of this process, with values, and with settings that it does not have.
func environment(values map[string]string) []string {
	env := os.Environ()
	for name, value := range settings {
		if os.Getenv(name) == "" {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	return env
}

// serveHandlers serves the object until ctx ends.
func serveHandlers(ctx context.Context, addr string) {
	object := restate.NewObject(service).
		Handler("create", restate.NewObjectHandler(create)).
		Handler("send", restate.NewObjectHandler(send))
	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	if err := server.NewRestate().WithLogger(quiet, true).Bind(object).Start(ctx, addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
