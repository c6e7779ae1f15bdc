package bucket

import (
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/actors/repository"
	"troupe/actors/repository/bucket/buckettest"
	"troupe/actors/repository/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// optionsFor are those of the owner of a server.
func optionsFor(s *buckettest.Server, b *buckettest.Bucket) Options {
	return Options{
		Endpoint: s.Endpoint, Bucket: b.Name, Prefix: b.Prefix, AccessKey: buckettest.AccessKey, SecretKey: buckettest.SecretKey,
		Poll: 20 * time.Millisecond, Log: zerolog.Nop(),
	}
}

func newBucket(t testing.TB, o Options) *Bucket {
	t.Helper()
	b, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, b.Close())
	})
	return b
}

func nameOf(t testing.TB) string { return fmt.Sprintf("b%016x", sumOf(t.Name(), false)) }

// TestSuite runs the conformance suite on a real server, on a whole bucket and
// behind a prefix.
func TestSuite(t *testing.T) {
	server := buckettest.Start(t)
	for _, prefix := range []string{"", "templates/of/us/"} {
		t.Run("prefix "+prefix, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) (repository.Source, sourcetest.Editor) {
				edit := server.Bucket(nameOf(t))
				edit.Prefix = prefix
				if prefix != "" {
					for _, key := range []string{"above.rml", "templates/of/beside.rml", "templates/of/us.rml"} {
						require.NoError(t, edit.PutKey(key, "x"))
					}
				}
				return newBucket(t, optionsFor(server, edit)), edit
			})
		})
	}
}
