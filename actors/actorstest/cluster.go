package actorstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/audit"
	"troupe/actors/child"
	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
	"troupe/persistence/storetest"
)

const (
	pace        = 20 * time.Millisecond // cluster.Options.Pace: at the default a cluster would need seconds to grow
	tick        = 2 * time.Second       // cluster.Options.Tick: nobody loses what it leads because the processors are short
	joinMax     = time.Minute           // joinMax bounds how long a node may take to join, and handOverMax one try of another to lead
	handOverMax = 5 * time.Second
	replicas    = 3 // cluster.Options.Replicas
)

// StartCluster starts nodes that are one service, as the program does in a process for each: with logs of Raft, cluster
// ports on this machine, and a published home. Of each shard three nodes have a replica, so that none of five has all. Every
// node leads at least one when there are three.
func StartCluster(t testing.TB, o Options, nodes int) []*Actors {
	t.Helper()
	dir, all := t.TempDir(), make([]*Actors, nodes)
	for i := range all {
		all[i] = &Actors{t: t, Dir: dir, Disk: storetest.NewSteadyDisk(), nodes: all}
	}
	first := all[0]
	for name, text := range o.Files {
		first.put(name, text)
	}
	folders, addresses := make([]string, nodes), make([]string, nodes)
	for i := range all {
		folders[i] = filepath.Join(t.TempDir(), "node")
	}
	addresses[0] = first.found(folders[0], nodes)
	for i, a := range all {
		if i > 0 {
			addresses[i] = first.admit(folders[i])
		}
		a.startNode(cluster.Options{Dir: folders[i], Listen: addresses[i], Advertise: addresses[i], Replicas: replicas, Tick: tick, Pace: pace, Log: o.Log})
	}
	first.share()
	// NB: all that comes now ends before any store is closed: without the others nothing is written.
	for _, a := range all {
		a.runNode(o)
	}
	return all
}

// found makes the store that of the first node of a cluster, and what is in the files of the home published there.
func (a *Actors) found(folder string, nodes int) (address string) {
	a.t.Helper()
	var err error
	a.Store, err = a.Disk.Open(persistence.Options{Shards: nodes})
	a.must(err)
	a.openDefinitions(zerolog.Nop())
	a.must(home.PublishFirst(home.PublishedOptions{Store: a.Store, Catalog: a.catalog, Templates: a.templates}, a.load(), "actorstest"))
	listener := a.listen()
	address = listener.Addr().String()
	_, err = cluster.Found(a.Store, folder, address)
	a.must(err)
	a.must(a.Store.Close())
	a.must(listener.Close())
	return address
}

// admit has another node join, whose files come into a folder.
func (a *Actors) admit(folder string) (address string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), joinMax)
	defer cancel()
	text, err := a.Node.Invite(ctx, time.Hour)
	a.must(err)
	key, err := peer.ParseJoinKey(text)
	a.must(err)
	listener := a.listen()
	address = listener.Addr().String()
	joined, err := cluster.Join(ctx, cluster.Joining{Key: key, Advertise: address, Listener: listener})
	a.must(err)
	a.must(joined.Save(folder))
	return address
}

// NB: what the system chooses on its own may be the port of a connection by the time the node opens it.
func (a *Actors) listen() net.Listener {
	a.t.Helper()
	for range 1000 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))); err == nil {
			return l
		}
	}
	a.t.Fatal("actorstest: no port is free")
	return nil
}

func (a *Actors) startNode(o cluster.Options) {
	a.t.Helper()
	over, cancel := context.WithCancel(context.Background())
	cancel() // nobody needs the answers of calls that go on
	var err error
	a.Node, err = cluster.Load(o)
	a.must(err)
	a.t.Cleanup(func() { _ = a.Node.ClosePort(over) })
	a.must(a.Node.Claim(context.Background()))
	a.Store, err = a.Disk.Open(persistence.Options{Shards: len(a.nodes), Replication: a.Node.Replication()})
	a.must(err)
	a.t.Cleanup(func() { a.must(a.Store.Close()) })
	a.must(a.Node.Run(a.Store))
	a.stopAtEnd(a.Node)
}

func (a *Actors) share() {
	a.t.Helper()
	a.await("the replicas of every shard", func() bool {
		status := a.Node.Status()
		if len(status.Nodes) != len(a.nodes) || len(status.Short) > 0 {
			return false
		}
		for _, n := range status.Nodes {
			if !n.Voter {
				return false
			}
		}
		return true
	})
	leads := map[*Actors]int{}
	for sh := range a.Store.AllShards() {
		var to *Actors // that leads least, of those that can
		for i := range a.nodes {
			n := a.nodes[(int(sh)+1+i)%len(a.nodes)]
			if n.votes(sh) && (to == nil || leads[n] < leads[to]) {
				to = n
			}
		}
		leads[to]++
		a.await("another node that leads a shard", func() bool {
			for _, n := range a.nodes { // NB: on a machine with much to do another one may lead than before
				if n != to && n.Store.Epoch(sh) != 0 {
					ctx, cancel := context.WithTimeout(context.Background(), handOverMax)
					_ = n.Store.Replica(sh).HandOver(ctx, string(to.Node.Self())) // NB: it is tried again
					cancel()
				}
			}
			return to.Store.Epoch(sh) != 0
		})
	}
}

func (a *Actors) votes(sh key.Shard) bool {
	g := a.Store.Replica(sh)
	return g != nil && slices.ContainsFunc(g.Members(), func(m replica.Member) bool { return m.Voter && m.Node == string(a.Node.Self()) })
}

func (a *Actors) runNode(o Options) {
	a.t.Helper()
	a.await("what is published, at every node", func() bool {
		here, err := home.IsPublished(a.Store)
		a.must(err)
		return here
	})
	a.openDefinitions(o.Log)
	a.must(formportal.AddPlainWorkflow(a.catalog, a.parser))
	var err error
	a.published, err = home.OpenPublished(home.PublishedOptions{
		Store: a.Store, Catalog: a.catalog, Templates: a.templates, TookAccess: a.tookAccess, Took: a.tookPublished,
	})
	a.must(err)
	access := a.published.Access()
	o.Identity.Directory, o.Identity.Clock, o.Identity.Log = access.Directory, o.Clock, o.Log
	identities, err := identity.StartReplicated(identity.ReplicatedOptions{
		Options: o.Identity, Store: a.Store, Fresh: a.Node.Fresh, Current: a.current, ReadDirectory: a.readDirectory,
		CurrentMax: time.Minute, // on a busy machine a leader takes its time
	})
	a.must(err)
	a.stopAtEnd(identities)
	a.startAudit(o, a.current)
	a.Identities = &audit.Identities{Identities: identities, Log: a.Audit}
	a.run(o, access.Rights)
	a.published.Start()
	a.stopAtEnd(a.published)
}

func (a *Actors) current(ctx context.Context) error { return a.Node.Current(ctx, key.Meta) }

func (a *Actors) readDirectory(take func(*identity.Directory)) {
	if err := a.published.ReadAccess(func(access home.Access) { take(access.Directory) }); err != nil {
		a.t.Errorf("actorstest: read the users: %v", err)
	}
}

func (a *Actors) leaderOf(shard uint16) (*workflow.Router, error) {
	for _, n := range a.nodes {
		if n.Workflows != nil && n.Store.Epoch(key.Shard(shard)) != 0 {
			return n.Workflows, nil
		}
	}
	return nil, failure.ErrUnavailable
}

func (a *Actors) tellElsewhere(ctx context.Context, shard uint16, m *child.Message) (refused string, err error) {
	leader, err := a.leaderOf(shard)
	if err != nil {
		return "", err
	}
	return leader.Inside(ctx, m)
}

func (a *Actors) putElsewhere(ctx context.Context, shard uint16, rows []incident.Row) error {
	leader, err := a.leaderOf(shard)
	if err != nil {
		return err
	}
	return leader.Incidents.Put(ctx, shard, rows)
}

func (a *Actors) tookAccess(access home.Access) {
	a.Identities.SetDirectory(access.Directory)
	a.Repository.SetRights(access.Rights)
}

func (a *Actors) tookPublished(err error) {
	if err != nil {
		a.t.Errorf("actorstest: take over what is published: %v", err)
		return
	}
	a.took.Add(1)
}

func (a *Actors) publishToAll() {
	a.t.Helper()
	a.await("a node that publishes", func() bool {
		for _, n := range a.nodes {
			if n.Store.Epoch(key.Meta) != 0 {
				a.must(n.published.Publish(n.load(), "actorstest"))
				return true
			}
		}
		return false
	})
	a.AwaitCurrent()
	for _, n := range a.nodes {
		for range 2 { // NB: the first may have begun before
			before := n.took.Load()
			n.published.Replaced()
			a.await("what was published, in use at every node", func() bool { return n.took.Load() > before })
		}
	}
}
