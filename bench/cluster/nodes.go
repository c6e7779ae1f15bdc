package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"troupe/actors/cluster"
	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/gateway/admin"
	"troupe/gateway/client"
)

const (
	nodeCount = 3
	// wholeMax is how long a cluster may take to be whole again.
	wholeMax = 2 * time.Minute
	lookEach = 50 * time.Millisecond
)

// fleet is the cluster.
type fleet struct {
	program, dir string
	nodes        [nodeCount]*node
	network      *network // nil unless an episode needs it
}

// node is a place for one: a replaced node has the place of the one before.
type node struct {
	machine
	program, home, log string
	http, cluster      string // addresses
	client             *client.Client
	process            atomic.Pointer[process.Process] // nil while it does not run
}

// found makes a cluster of running nodes in dir.
func found(ctx context.Context, program, dir string, apart bool) (*fleet, error) {
	f := &fleet{program: program, dir: dir}
	for i := range f.nodes {
		name := string(rune('a' + i))
		f.nodes[i] = &node{program: program, home: filepath.Join(dir, name), log: filepath.Join(dir, name+".log"), machine: machine{index: i, ip: "127.0.0.1"}}
	}
	if apart {
		if err := f.setApart(ctx); err != nil {
			return f, err
		}
	}
	for _, n := range f.nodes {
		var err1, err2 error
		n.http, err1 = n.lastingAddr()
		n.cluster, err2 = n.lastingAddr()
		if err := errors.Join(err1, err2); err != nil {
			return f, err
		}
	}
	first := f.nodes[0]
	if err := load.BuiltIn().WriteHome(first.home); err != nil {
		return f, err
	}
	if err := os.WriteFile(filepath.Join(first.home, "workflows", counterID+".yaml"), []byte(counter), 0o644); err != nil {
		return f, err
	}
	if _, err := first.output(ctx, "cluster", "init", "--home", first.home, "--cluster-listen", first.cluster); err != nil {
		return f, err
	}
	if err := first.start(ctx); err != nil {
		return f, err
	}
	var token string
	err := again(ctx, func() (err error) { // the server is not there at once
		token, err = first.output(ctx, "token", "create", "--home", first.home, "--user", load.UserID)
		return err
	})
	if err != nil {
		return f, err
	}
	for _, n := range f.nodes {
		// NB: each attempt is for one node; who sends chooses another one after a failure.
		n.client, err = client.New(client.Options{Address: "http://" + n.http, Token: token, RetryMax: -1})
		if err != nil {
			return f, err
		}
		if n == first {
			continue
		}
		if err := f.join(ctx, n, first); err != nil {
			return f, err
		}
	}
	return f, f.whole(ctx)
}

// setApart gives each node a network namespace and a disk.
func (f *fleet) setApart(ctx context.Context) error {
	var machines []*machine
	for _, n := range f.nodes {
		machines = append(machines, &n.machine)
	}
	var err error
	if f.network, err = newNetwork(ctx, machines); err != nil {
		return err
	}
	for _, n := range f.nodes {
		if err := f.network.newDisk(ctx, &n.machine, f.dir); err != nil {
			return err
		}
		n.home = filepath.Join(n.disk, "home")
	}
	return nil
}

// lastingAddr returns an address of the node that nobody listens on. Its port is none that
// systems give to connections, so that it is still free when a node that was ended comes back.
func (n *node) lastingAddr() (string, error) {
	var err error
	for range 100 {
		port := strconv.Itoa(12_000 + rand.IntN(18_000))
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return net.JoinHostPort(n.ip, port), l.Close()
		}
	}
	return "", err
}

// output is what a command of the program says on the machine of the node.
func (n *node) output(ctx context.Context, args ...string) (string, error) {
	command := n.command(n.program, args...)
	return process.Output(ctx, command[0], command[1:]...)
}

func (n *node) start(ctx context.Context) error {
	command := n.command(n.program, "serve", "--home", n.home)
	p, err := process.Launch(ctx, n.log, n.http, command[0], command[1:]...)
	n.process.Store(p)
	return err
}

func (n *node) kill() {
	if p := n.process.Swap(nil); p != nil {
		p.Kill()
	}
}

// stop asks the node to end.
func (n *node) stop() {
	if p := n.process.Swap(nil); p != nil {
		p.Stop()
	}
}

// pause makes the node stand still for a while.
func (n *node) pause(ctx context.Context, d time.Duration) error {
	p := n.process.Load()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	wait(ctx, d)
	return p.Signal(syscall.SIGCONT)
}

// close ends all nodes.
func (f *fleet) close() {
	if f == nil {
		return
	}
	var all sync.WaitGroup
	for _, n := range f.nodes {
		all.Go(n.kill)
		if n.client != nil {
			n.client.Close()
		}
	}
	all.Wait()
}

// remove ends all nodes, and removes their machines.
func (f *fleet) remove(ctx context.Context) error {
	f.close()
	if f == nil || f.network == nil {
		return nil
	}
	return f.network.close(ctx)
}

// join makes n a node, invited by another one, and starts it.
func (f *fleet) join(ctx context.Context, n, by *node) error {
	var key string
	err := again(ctx, func() (err error) {
		key, err = by.output(ctx, "cluster", "invite", "--home", by.home)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := n.output(ctx, "cluster", "join", key, "--home", n.home, "--cluster-listen", n.cluster); err != nil {
		return err
	}
	return n.start(ctx)
}

// replace has n, which does not run, lose its folder and join anew.
func (f *fleet) replace(ctx context.Context, n, by *node) error {
	var status cluster.Status
	err := again(ctx, func() (err error) {
		status, err = by.status(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(n.home); err != nil {
		return err
	}
	for _, s := range status.Nodes {
		if s.Address != n.cluster {
			continue
		}
		err := again(ctx, func() error {
			if status, err := by.status(ctx); err == nil && !names(status, n.cluster) {
				return nil // an earlier attempt did it
			}
			_, err := by.output(ctx, "cluster", "remove", string(s.ID), "--lost", "--home", by.home)
			return err
		})
		if err != nil {
			return err
		}
	}
	return f.join(ctx, n, by)
}

func names(status cluster.Status, address string) bool {
	for _, n := range status.Nodes {
		if n.Address == address {
			return true
		}
	}
	return false
}

// status is how a node sees the cluster.
func (n *node) status(ctx context.Context) (status cluster.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := admin.Dial(ctx, filepath.Join(n.home, "admin.sock"))
	if err != nil {
		return status, err
	}
	text, err := c.ClusterStatus(ctx)
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal(text, &status)
}

// whole returns when every node says that all are there and nothing lacks replicas.
func (f *fleet) whole(ctx context.Context) error {
	return again(ctx, func() error {
		for _, n := range f.nodes {
			status, err := n.status(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", n.home, err)
			}
			good := len(status.Nodes) == nodeCount && len(status.Short) == 0
			for _, s := range status.Nodes {
				good = good && s.Alive && s.Voter
			}
			if !good {
				return fmt.Errorf("not whole, as %s sees it: %+v", n.home, status)
			}
		}
		return nil
	})
}

// again does something until it works, for wholeMax.
func again(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, wholeMax)
	defer cancel()
	for {
		err := do()
		if err == nil {
			return nil
		}
		if !wait(ctx, lookEach) {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// wait reports whether the time has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
