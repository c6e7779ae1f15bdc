package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"troupe/bench/process"
)

// postgresSettings are for a machine with some GB of memory. Commits are synced, which is the default.
var postgresSettings = []string{"shared_buffers=1GB", "max_wal_size=4GB", "checkpoint_timeout=15min", "max_connections=300", "listen_addresses="}

// runDBOS is the workflow.
func runDBOS(ctx dbos.Context, o Order) (Receipt, error) {
	reserved, err := dbos.RunAsStep(ctx, func(context.Context) (Reservation, error) { return reserve(o), nil }, dbos.WithStepName("reserve"))
	if err != nil {
		return Receipt{}, err
	}
	return dbos.RunAsStep(ctx, func(context.Context) (Receipt, error) { return charge(Paid{o, reserved}), nil }, dbos.WithStepName("charge"))
}

func postgresURL(socket string) string { return "postgres:///postgres?user=postgres&host=" + socket }

// dbosWorker is a service with DBOS in it: it answers an order when its workflow is done. A pool of 20 connections, the default of
// DBOS, was faster than 8 and as fast as 64 when events were measured.
func dbosWorker(ctx context.Context, listen, socket string) error {
	config, err := pgxpool.ParseConfig(postgresURL(socket))
	if err != nil {
		return err
	}
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	d, err := dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{AppName: "orders", SystemDBPool: pool, Logger: quiet})
	if err != nil {
		return err
	}
	dbos.RegisterWorkflow(d, runDBOS)
	if err := dbos.Launch(d); err != nil {
		return err
	}
	defer func() { _ = dbos.Shutdown(d, 5*time.Second) }()
	handle := func(r *http.Request) (receipt Receipt, err error) {
		var o Order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			return receipt, err
		}
		run, err := dbos.RunWorkflow(d, runDBOS, o, dbos.WithWorkflowID(o.Number))
		if err != nil {
			return receipt, err
		}
		return run.GetResult()
	}
	front := http.NewServeMux()
	front.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	front.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		receipt, err := handle(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(receipt) // an error is the caller's, who has gone
	})
	server := &http.Server{Addr: listen, Handler: front, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// startDBOS makes a cluster of PostgreSQL and starts its server and the service.
func startDBOS(ctx context.Context, s *started) error {
	home := s.dir + "/postgres"
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	as, err := postgresUser(home)
	if err != nil {
		return err
	}
	initdb := exec.CommandContext(ctx, s.program+"/initdb", "--pgdata", home+"/data", "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8")
	initdb.SysProcAttr = as
	if text, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, text)
	}
	args := []string{"-D", home + "/data", "-k", home}
	for _, setting := range postgresSettings {
		args = append(args, "-c", setting)
	}
	if err := s.begin(ctx, as, s.program+"/postgres", args...); err != nil {
		return err
	}
	err = s.ready(ctx, func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, postgresURL(home))
		if err == nil {
			err = c.Close(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	listen, err := process.FreeAddr()
	if err != nil {
		return err
	}
	if err := s.worker(ctx, "dbos", listen, home); err != nil {
		return err
	}
	client := newHTTP()
	s.run = func(ctx context.Context, orders []Order) error {
		body, err := json.Marshal(orders[0])
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+listen+"/orders", bytes.NewReader(body))
		if err != nil {
			return err
		}
		reply, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = reply.Body.Close() }()
		var receipt Receipt
		if err := json.NewDecoder(reply.Body).Decode(&receipt); err != nil {
			return fmt.Errorf("%s: %w", reply.Status, err)
		}
		return checkReceipt(orders[0], receipt)
	}
	return s.ready(ctx, func(ctx context.Context) error {
		_, err := process.Get(ctx, "http://"+listen+"/readyz")
		return err
	})
}

// postgresUser gives a folder to the user postgres when this program runs as root, as whom PostgreSQL refuses to run, and returns
// what makes a process theirs.
func postgresUser(folder string) (*syscall.SysProcAttr, error) {
	as := &syscall.SysProcAttr{}
	if os.Getuid() != 0 {
		return as, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return as, errors.Join(err, err2, os.Chown(folder, uid, gid))
}
