package endtoend

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// TestABackupUnderLoad holds persistence/PROMISES.md, "P32: A backup has what was acknowledged": backups of a program that
// is under load, in increments and in one file, have each request that was acknowledged before they began, at its place,
// and whole histories. The token of the original works, a session does not, and the original goes on.
func TestABackupUnderLoad(t *testing.T) {
	p := launch(t, newHome(t, map[string]string{"workflows/load.yaml": loadFlow}), binary(), "--mem-table-bytes", "65536",
		"--backup.to", "backups", "--backup.every", "1s")
	p.ready()
	l, g, token, session := newLedger(), newGate(), p.home.token("ann"), p.home.session("ann")
	workers := newWorkers(16, l, token, seed(t))
	var done sync.WaitGroup
	for _, w := range workers {
		done.Go(func() { g.work(w) })
	}
	g.open(p.address())
	dir := t.TempDir()
	folder, file := filepath.Join(dir, "backups"), filepath.Join(dir, "b.tar.zst")
	type taken struct {
		from   string
		before map[string]int
	}
	var all []taken
	for n := range 4 {
		least := l.acknowledged() + 200
		p.await("acknowledgements", func() bool { return l.acknowledged() >= least })
		of := taken{folder, l.ackedPlaces()}
		if n == 3 {
			of.from = file
			wantCommand(t, "store", "backup", "--home", p.home.dir, file)
		} else {
			wantCommand(t, "store", "backup", "--home", p.home.dir, "--to", folder)
		}
		all = append(all, of)
	}
	g.end()
	done.Wait()
	l.report(t)
	p.await("a backup of the server's own", func() bool { return p.log.has("backup written") })
	p.await("the checkpoints to be removed", func() bool {
		left, err := filepath.Glob(filepath.Join(p.home.dir, "data", "checkpoint-*"))
		return err == nil && len(left) == 0
	})
	p.quiet = true
	p.kill()
	t.Log(wantCommand(t, "store", "drill", "--home", p.home.dir, "--from", filepath.Join(p.home.dir, "backups")))
	for _, of := range all[2:] {
		copied := restored(t, of.from, l.asOf(of.before), token)
		credential := copied.withCookie(session).Credential
		assert.Equal(t, 401, copied.Send(t, request{Method: "GET", Path: wiretest.Root + "/choices", Headers: credential}).Status, "the session")
		assert.NoDirExists(t, filepath.Join(copied.home.dir, "backups"), "a copy does not write where the original backs up to")
		copied.stop()
	}
}

// restored is a server on what a backup has, which must be all of a ledger.
func restored(t *testing.T, from string, as *ledger, token string) *program {
	t.Helper()
	to := newHome(t, nil)
	to.dir = filepath.Join(to.dir, "restored")
	t.Log(wantCommand(t, "store", "restore", "--home", to.dir, from))
	copied, got := launch(t, to, binary()), &killed{}
	copied.ready()
	got.check(t, copied.as(token), as, slices.Sorted(maps.Keys(as.mu.created)), nil)
	assert.LessOrEqual(t, len(got.found.lost)+len(got.found.doubled)+len(got.found.broken), 0, &got.found)
	assert.Greater(t, got.found.instances, 10)
	return copied
}

// TestABackupOfACluster holds the same of three nodes under load: the backup of each becomes the home of one server, with the
// published text files, and a node that does not run, or runs alone, gives none, with the reason.
func TestABackupOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("three nodes take their time")
	}
	f, err := Found(t.Context(), Options{Dir: t.TempDir(), Nodes: 3})
	t.Cleanup(f.Close)
	require.NoError(t, err)
	l, g, s := newLedger(), newGate(), seed(t)
	g.pace = pace
	var done sync.WaitGroup
	for _, w := range newWorkers(8, l, f.Token, s) {
		w.inCluster, w.link.patience = true, attemptMax
		done.Go(func() { g.work(w) })
	}
	g.open(f.Nodes[0].HTTP, f.Nodes[1].HTTP, f.Nodes[2].HTTP)
	file := filepath.Join(t.TempDir(), "b.tar.zst")
	var before map[string]int
	for n, least := range []int{200, 400} {
		require.NoError(t, Again(t.Context(), func() error {
			if l.acknowledged() < least {
				return errors.New("too few are acknowledged")
			}
			return nil
		}))
		before = l.ackedPlaces()
		args := []string{"store", "backup", "--home", f.Nodes[n].Home, file}
		if n == 0 {
			args = []string{"store", "backup", "--home", f.Nodes[n].Home, "--to", filepath.Join(t.TempDir(), "many")}
		}
		out, err := f.Nodes[n].Output(t.Context(), args...)
		require.NoError(t, err, out)
	}
	g.end()
	done.Wait()
	l.report(t)
	f.Nodes[0].Kill()
	f.Nodes[2].Kill()
	for n, why := range map[int]string{0: "start it, or back up a node that runs", 1: "are most of its nodes running?"} {
		out, err := f.Nodes[n].Output(t.Context(), "store", "backup", "--home", f.Nodes[n].Home, filepath.Join(t.TempDir(), "none.tar.zst"))
		assert.True(t, err != nil && strings.Contains(out+err.Error(), why), "%s %v", out, err)
	}
	f.Nodes[1].Kill()
	restored(t, file, l.asOf(before), f.Token).stop()
}

// ackedPlaces are the places of all requests that were acknowledged, by their keys.
func (l *ledger) ackedPlaces() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	places := map[string]int{}
	for key, p := range l.mu.promises {
		if p.acked {
			places[key] = p.position
		}
	}
	return places
}

// asOf is the ledger as if only these requests had been acknowledged, and nothing had been shown.
func (l *ledger) asOf(places map[string]int) *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	as := newLedger()
	for id, created := range l.mu.created {
		if _, acked := places[created.key]; !acked {
			continue
		}
		as.mu.created[id] = created
		for _, p := range l.mu.events[id] {
			of := *p
			of.position, of.acked = places[p.key], places[p.key] > 0
			as.mu.events[id] = append(as.mu.events[id], &of)
		}
	}
	return as
}
