package bucket

import (
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// pageKeys is how many keys are on a page of a fakeStore.
const pageKeys = 3

// fakeStore is a store that holds keys and behaves as no real one can be made to:
// it has keys that no file system takes, breaks off and refuses. Each object's
// text is its key.
type fakeStore struct {
	server *httptest.Server
	bucket string
	closed chan struct{}

	mu struct {
		sync.Mutex
		keys        []string
		broken      map[string]int // bytes before the answer breaks off
		hanging     map[string]int // and before it hangs
		status      int            // of all answers, when it is not 0
		connections int
	}
}

func newFakeStore(t testing.TB, bucket string, keys ...string) *fakeStore {
	return newFakeStoreOn(t, nil, bucket, keys...)
}

// newFakeStoreOn makes one that listens on l; nil: on a port.
func newFakeStoreOn(t testing.TB, l net.Listener, bucket string, keys ...string) *fakeStore {
	s := &fakeStore{bucket: bucket, closed: make(chan struct{})}
	slices.Sort(keys)
	s.mu.keys, s.mu.broken, s.mu.hanging = keys, map[string]int{}, map[string]int{}
	s.server = httptest.NewUnstartedServer(s)
	if l != nil {
		_ = s.server.Listener.Close()
		s.server.Listener = l
	}
	s.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.mu.connections++
			s.mu.Unlock()
		}
	}
	s.server.Start()
	t.Cleanup(func() {
		close(s.closed)
		s.server.Close()
	})
	return s
}

func (s *fakeStore) options() Options {
	return Options{Endpoint: s.server.URL, Region: "us-east-1", Bucket: s.bucket, Log: zerolog.Nop()}
}

// change adds a key, and takes one away, or all below one with a slash at its end,
// or with * all that there are.
func (s *fakeStore) change(add, take string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.keys = slices.DeleteFunc(s.mu.keys, func(key string) bool {
		return take == "*" || key == take || strings.HasSuffix(take, "/") && strings.HasPrefix(key, take)
	})
	if add != "" {
		s.mu.keys = append(s.mu.keys, add)
		slices.Sort(s.mu.keys)
	}
}

func (s *fakeStore) breakOff(key string, after int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.broken[key] = after
}

func (s *fakeStore) hang(key string, after int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.hanging[key] = after
}

func (s *fakeStore) fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.status = status
}

func (s *fakeStore) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.connections
}

// ServeHTTP answers ListObjectsV2 and GetObject.
func (s *fakeStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	keys, status := slices.Clone(s.mu.keys), s.mu.status
	key := strings.TrimPrefix(r.URL.Path, "/"+s.bucket+"/")
	broken, isBroken := s.mu.broken[key]
	hanging, isHanging := s.mu.hanging[key]
	s.mu.Unlock()
	switch {
	case status != 0:
		refuse(w, status, "AccessDenied")
	case r.URL.Query().Get("list-type") == "2":
		s.list(w, r.URL.Query(), keys)
	case !slices.Contains(keys, key):
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("Etag", `"`+key+`"`)
		w.Header().Set("Last-Modified", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Length", fmt.Sprint(len(key)))
		switch {
		case isBroken:
			_, _ = io.WriteString(w, key[:broken])
			panic(http.ErrAbortHandler)
		case isHanging:
			_, _ = io.WriteString(w, key[:hanging])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-s.closed:
			case <-r.Context().Done():
			}
		default:
			_, _ = io.WriteString(w, key)
		}
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message></Error>", code)
}

type listedPage struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	EncodingType          string
	Contents              []listedEntry
	CommonPrefixes        []struct{ Prefix string }
}

type listedEntry struct {
	Key          string
	LastModified string
}

func (s *fakeStore) list(w http.ResponseWriter, query url.Values, keys []string) {
	page := listedPage{EncodingType: "url"}
	prefix, delimiter, from := query.Get("prefix"), query.Get("delimiter"), query.Get("continuation-token")
	last := ""
	for _, key := range keys {
		behind, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		shown, isFolder := key, false
		if name, _, cut := strings.Cut(behind, delimiter); delimiter != "" && cut {
			shown, isFolder = prefix+name+delimiter, true
		}
		if shown == last || shown <= from {
			continue
		}
		if len(page.Contents)+len(page.CommonPrefixes) == pageKeys {
			page.IsTruncated, page.NextContinuationToken = true, last
			break
		}
		last = shown
		if isFolder {
			page.CommonPrefixes = append(page.CommonPrefixes, struct{ Prefix string }{url.QueryEscape(shown)})
		} else {
			page.Contents = append(page.Contents, listedEntry{url.QueryEscape(shown), "2001-09-09T01:46:40Z"})
		}
	}
	_ = xml.NewEncoder(w).Encode(page)
}
