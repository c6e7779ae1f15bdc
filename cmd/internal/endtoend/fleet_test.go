package endtoend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"troupe/actors/cluster"
	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/gateway/admin"
	"troupe/gateway/wiretest"
)

const (
	// WholeMax is how long a cluster may take to be whole again.
	WholeMax = 2 * time.Minute
	lookEach = 50 * time.Millisecond
)

// Fleet is the cluster.
type Fleet struct {
	Nodes []*Node
	spare *Node  // a place that no node has now; nil: there is none
	Token string // of ann
}

// Options say what a cluster is like.
type Options struct {
	// Dir is where the nodes have their homes.
	Dir string
	// Nodes is how many there are.
	Nodes int
	// Machines are where the nodes run, one for each; without any all run here, below Dir.
	Machines []Machine
}

// Machine is where a node runs.
type Machine struct {
	// Enter are the words before a command that runs there.
	Enter []string
	// IP is its address, and Dir where the home is made.
	IP, Dir string
}

// Node is a place for one: a replaced node has the place of the one before.
type Node struct {
	Machine
	Home                 string
	HTTP, Admin, Cluster string // addresses
	log                  string
	process              atomic.Pointer[process.Process] // nil while it does not run
}

// Found makes a cluster of running nodes. What it returns must be closed, with an error too.
func Found(ctx context.Context, o Options) (*Fleet, error) {
	f := &Fleet{Nodes: make([]*Node, o.Nodes)}
	for i := range f.Nodes {
		name := string(rune('a' + i))
		at := Machine{IP: "127.0.0.1", Dir: o.Dir}
		if len(o.Machines) > 0 {
			at = o.Machines[i]
		}
		f.Nodes[i] = &Node{Machine: at, Home: filepath.Join(at.Dir, name), log: filepath.Join(o.Dir, name+".log")}
		if err := f.Nodes[i].setAddresses(); err != nil {
			return f, err
		}
	}
	first := f.Nodes[0]
	for name, text := range map[string]string{"identity.yaml": wiretest.People, "workflows/load.yaml": loadFlow} {
		path := filepath.Join(first.Home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return f, err
		}
	}
	if _, err := first.Output(ctx, "cluster", "init", "--home", first.Home, "--cluster-listen", first.Cluster); err != nil {
		return f, err
	}
	if err := first.Start(ctx); err != nil {
		return f, err
	}
	err := Again(ctx, func() (err error) { // the server is not there at once
		f.Token, err = first.Output(ctx, "token", "create", "--home", first.Home, "--user", "ann")
		return err
	})
	if err != nil {
		return f, err
	}
	f.Token = strings.TrimSpace(f.Token)
	for _, n := range f.Nodes[1:] {
		if err := f.Join(ctx, n, first); err != nil {
			return f, err
		}
	}
	return f, f.Whole(ctx)
}

func (n *Node) setAddresses() error {
	for _, to := range []*string{&n.HTTP, &n.Admin, &n.Cluster} {
		free, err := process.FreeAddr()
		if err != nil {
			return err
		}
		_, port, err := net.SplitHostPort(free)
		if err != nil {
			return err
		}
		*to = net.JoinHostPort(n.IP, port)
	}
	return nil
}

func (n *Node) Output(ctx context.Context, args ...string) (string, error) {
	command := slices.Concat(n.Enter, []string{binary()}, args)
	return process.Output(ctx, command[0], command[1:]...)
}

// Start starts the node. Whole says when it takes part.
func (n *Node) Start(ctx context.Context) error {
	command := slices.Concat(n.Enter, []string{binary(), "serve", "--home", n.Home, "--admin", n.Admin})
	p, err := process.Launch(ctx, n.log, n.HTTP, command[0], command[1:]...)
	n.process.Store(p)
	return err
}

func (n *Node) Process() *process.Process { return n.process.Load() }

func (n *Node) Kill() {
	if p := n.process.Swap(nil); p != nil {
		p.Kill()
	}
}

func (n *Node) Stop() {
	if p := n.process.Swap(nil); p != nil {
		p.Stop()
	}
}

func (f *Fleet) Close() {
	if f == nil {
		return
	}
	var all sync.WaitGroup
	for _, n := range f.Nodes {
		all.Go(n.Kill)
	}
	all.Wait()
}

// Join makes n a node, invited by another one, and starts it.
func (f *Fleet) Join(ctx context.Context, n, by *Node) error {
	var key string
	err := Again(ctx, func() (err error) {
		key, err = by.Output(ctx, "cluster", "invite", "--home", by.Home)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := n.Output(ctx, "cluster", "join", key, "--home", n.Home, "--cluster-listen", n.Cluster); err != nil {
		return err
	}
	return n.Start(ctx)
}

func (n *Node) Status(ctx context.Context) (status cluster.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := admin.Dial(ctx, filepath.Join(n.Home, "admin.sock"))
	if err != nil {
		return status, err
	}
	text, err := c.ClusterStatus(ctx)
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal(text, &status)
}

// Whole returns when every node says that all are there and nothing lacks replicas, and with an error
// once a node has ended by itself.
func (f *Fleet) Whole(ctx context.Context) error {
	return Again(ctx, func() error {
		for _, n := range f.Nodes {
			if err := n.Process().Failure(); err != nil {
				return fmt.Errorf("%s: %w", n.Home, err)
			}
			status, err := n.Status(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", n.Home, err)
			}
			good := len(status.Nodes) == len(f.Nodes) && len(status.Short) == 0
			for _, s := range status.Nodes {
				good = good && s.Alive && s.Voter
			}
			if !good {
				return fmt.Errorf("not whole, as %s sees it: %+v", n.Home, status)
			}
		}
		return nil
	})
}

// Again does something until it works, for WholeMax, or until a process that is needed has ended.
func Again(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, WholeMax)
	defer cancel()
	for {
		err := do()
		if err == nil || errors.Is(err, process.ErrEnded) {
			return err
		}
		if !load.Sleep(ctx, lookEach) {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
