package peer

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func FuzzParseJoinKey(f *testing.F) {
	f.Add(must(NewJoinKey("10.0.0.1:9400", testAuthorityPrint)).String())
	f.Add("troupe_join_1_aaaa")
	f.Add("troupe_join_9_")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseJoinKey(text)
		if err != nil {
			assert.False(t, strings.ContainsAny(err.Error(), "\r\n"), "an error of more than a line: %q", err)
			return
		}
		assert.Equal(t, strings.ToLower(strings.TrimSpace(text)), k.String(), text)
	})
}

func FuzzReadShard(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		rest := bytes.NewReader(data)
		shard, err := readShard(rest)
		if len(data) < 2 {
			assert.Error(t, err, "a shard of %d bytes: %d", len(data), shard)
			return
		}
		want := uint16(data[0])<<8 | uint16(data[1])
		assert.True(t, err == nil && shard == want && rest.Len() == len(data)-2, "%v %v %v %v %v", shard, err, rest.Len(), want, len(data)-2)
	})
}

// FuzzParseName reads what a certificate says before anybody has checked it.
func FuzzParseName(f *testing.F) {
	for _, text := range []string{
		name{testCluster, nodeID(1)}.uri().String(), name{cluster: testCluster}.uri().String(),
		"troupe://" + string(testCluster) + "/", "troupe://x@" + string(testCluster), "http://" + string(testCluster), "troupe:", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		n, err := parseName(u)
		if err != nil {
			return
		}
		assert.Equal(t, u.String(), n.uri().String(), "%q was read", text)
	})
}
