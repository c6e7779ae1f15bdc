package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/audit"
	"troupe/actors/hold"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/persistence"
	"troupe/persistence/backup"
	"troupe/persistence/key"
)

// backedUp is an archive of a home with a store.
func backedUp(t *testing.T) string {
	t.Helper()
	home, path := clitest.ExampleHome(t), filepath.Join(t.TempDir(), "b.tar.zst")
	makeStore(t, home)
	code, _, stderr := clitest.Invoke("store", "backup", "--home", home, path)
	require.Equal(t, 0, code, stderr)
	return path
}

func makeStore(t *testing.T, home string) {
	t.Helper()
	store, err := persistence.Open(homedir.Data(home), persistence.Options{IDFile: filepath.Join(home, homedir.StoreIDFile)})
	require.NoError(t, err)
	w := store.NewBatch(key.Meta)
	w.Set(key.Setting(nil, "bulk-"+runningJob), []byte(`{"id":"`+runningJob+`","workflowId":"w","status":"running"}`))
	require.NoError(t, store.Commit(w))
	require.NoError(t, store.Close())
}

const runningJob = "01M8NNJ627JNA3EFNQYF0WNX9N"

// TestARestoreThatIsKilledAnywhere holds persistence/PROMISES.md, "P32: A backup has what was acknowledged": a restore that
// is killed before any file, and before any move into the home, leaves a folder in which no server finds a home with a
// store of its own, and the next restore needs no help.
func TestARestoreThatIsKilledAnywhere(t *testing.T) {
	path := backedUp(t)
	for _, dataOnly := range []bool{false, true} {
		for n, killed := 0, true; killed; n++ {
			home := t.TempDir()
			if dataOnly {
				require.NoError(t, os.WriteFile(filepath.Join(home, "identity.yaml"), nil, 0o600))
			}
			left := n
			step := func() {
				if left--; left < 0 {
					panic(errKilled)
				}
			}
			killed = restoreUntil(t, path, home, dataOnly, step)
			if !killed {
				require.Greater(t, n, 10)
				checkRestored(t, home)
				break
			}
			mayServe := homedir.HasText(home) && homedir.Exists(filepath.Join(homedir.Data(home), "FORMAT"))
			assert.False(t, mayServe, "after %d steps a server would find a home", n)
			if homedir.Exists(filepath.Join(home, homedir.RestoringFolder)) {
				_, err := homedir.Ensure(home, nil)
				require.ErrorContains(t, err, "run the same `troupe store restore` again", "after %d steps", n)
			}
			require.False(t, restoreUntil(t, path, home, dataOnly, func() {}), "after %d steps", n)
			checkRestored(t, home)
		}
	}
}

var errKilled = errors.New("killed")

// restoreUntil calls step before each file and each move; a panic of it ends everything as a kill does.
func restoreUntil(t *testing.T, path, home string, dataOnly bool, step func()) (killed bool) {
	t.Helper()
	from, err := backup.OpenFile(path)
	require.NoError(t, err)
	defer func() {
		if r := recover(); r != nil {
			require.Equal(t, errKilled, r)
			killed = true
		}
	}()
	r := &restoring{
		source: filepath.Base(path), from: from, home: home, dataOnly: dataOnly, log: zerolog.Nop(), progress: func(int64, int64) { step() },
		rename: func(from, to string) error { step(); return os.Rename(from, to) },
	}
	_, err = r.restore(t.Context())
	require.NoError(t, err)
	return false
}

// checkRestored: the home is whole, what a restore uses is gone, and the store holds back what goes outside.
func checkRestored(t *testing.T, home string) {
	t.Helper()
	assert.True(t, homedir.HasText(home))
	assert.NoDirExists(t, filepath.Join(home, homedir.RestoringFolder))
	store, err := persistence.Open(homedir.Data(home), persistence.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { assert.NoError(t, store.Close()) }()
	h, err := hold.Open(store, zerolog.Nop())
	require.NoError(t, err)
	assert.True(t, h.Holds(hold.Outbox) && h.Holds(hold.Schedules))
	job, err := store.Load(key.Setting(nil, "bulk-"+runningJob))
	assert.True(t, err == nil && strings.Contains(string(job), `"status":"paused"`), "%s %v", job, err)
	log := audit.Start(audit.Options{Store: store})
	page, err := log.List(t.Context(), &audit.Query{Limit: 10})
	require.True(t, errors.Join(err, log.Stop(t.Context())) == nil && len(page.Rows) == 1, "%v %v", page, err)
	assert.True(t, page.Rows[0].Action == audit.StoreRestore && strings.HasSuffix(page.Rows[0].Target, "Z of b.tar.zst"), "%+v", page.Rows[0])
}

// TestADrillFindsWhatDiffers: a backup whose counts are not those of its store is refused, and nothing of the drill stays.
func TestADrillFindsWhatDiffers(t *testing.T) {
	b, err := backup.OpenFile(backedUp(t))
	require.NoError(t, err)
	b.Counts.Instances = map[string]int64{"order": 7}
	home := filepath.Join(t.TempDir(), "home")
	_, err = (&restoring{from: b, home: home, log: zerolog.Nop(), rename: os.Rename}).restore(t.Context())
	require.ErrorIs(t, err, backup.ErrDamaged)
	require.ErrorContains(t, err, "order: 0 instances, expected 7")
	assert.NoDirExists(t, home)
	left := t.TempDir()
	t.Setenv("TMPDIR", left)
	killed := filepath.Join(left, drillPrefix+"1")
	require.NoError(t, os.Mkdir(killed, 0o700))
	dir, err := drillFolder()
	require.NoError(t, err)
	assert.NoDirExists(t, killed)
	assert.DirExists(t, dir)
	assert.True(t, strings.HasPrefix(filepath.Base(dir), drillPrefix))
}

// TestShownSizes: sizes and moments are shown as people read them.
func TestShownSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1000: "1.0 kB", 1_500_000: "1.5 MB", 2_000_000_000_000_000: "2000.0 TB"} {
		assert.Equal(t, want, sizeText(n))
	}
	assert.Equal(t, "2026-11-30T08:00:00.000Z", momentText(time.Unix(1796025600, 0)))
}

// TestABackupWaitsForAServerThatStarts: the store is in use and nobody answers yet; here the other one stops again.
func TestABackupWaitsForAServerThatStarts(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "identity.yaml"), nil, 0o600))
	makeStore(t, home)
	synctest.Test(t, func(t *testing.T) {
		other, err := persistence.Open(homedir.Data(home), persistence.Options{})
		require.NoError(t, err)
		c := config.New()
		c.Home = home
		checkpoint := make(chan error)
		go func() {
			dir, done, err := checkpointOf(t.Context(), c)
			if err == nil {
				assert.DirExists(t, dir)
				done()
			}
			checkpoint <- err
		}()
		synctest.Wait()
		select {
		case err := <-checkpoint:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		require.NoError(t, other.Close())
		require.NoError(t, <-checkpoint)
	})
}
