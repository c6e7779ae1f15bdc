package backup

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/repository/bucket/buckettest"
	"troupe/cmd/internal/clitest"
)

// TestABucketOfBackups: what a folder does, a bucket does as well (cmd/troupe/HOME.md, "Backup").
func TestABucketOfBackups(t *testing.T) {
	server, home := buckettest.Start(t), clitest.ExampleHome(t)
	server.Bucket("backups")
	makeStore(t, home)
	for name, value := range map[string]string{"ENDPOINT": server.Endpoint, "ACCESS_KEY": buckettest.AccessKey, "SECRET_KEY": buckettest.SecretKey} {
		t.Setenv("TROUPE_REPOSITORY_"+name, value)
	}
	const to = "s3://backups/of/troupe"
	run := func(want int, args ...string) (out, err string) {
		t.Helper()
		code, out, err := clitest.Invoke(args...)
		require.Equal(t, want, code, "%v: %s", args, err)
		return out, err
	}
	_, err := run(1, "store", "drill", "--home", home, "--from", to)
	assert.Contains(t, err, "there are no backups in "+to)
	for range 2 {
		out, _ := run(0, "store", "backup", "--home", home, "--to", to, "--keep", "1s")
		assert.Contains(t, out, "0 instances in "+to)
	}
	run(0, "store", "drill", "--home", home, "--from", to)
	restored := t.TempDir() + "/restored"
	run(0, "store", "restore", "--home", restored, to)
	_, serr := os.Stat(restored + "/identity.yaml")
	require.NoError(t, serr)
	_, err = run(1, "store", "backup", "--home", home, "--to", "s3://nowhere/x")
	assert.Contains(t, err, "s3://nowhere/x")
	_, err = run(1, "store", "backup", "--home", home, "--to", "s3://B/x")
	assert.Contains(t, err, "s3://B/x")
	server.Stop()
	run(1, "store", "restore", "--home", restored+"2", to)
}
