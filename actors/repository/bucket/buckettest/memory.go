//go:build !versitygw

package buckettest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// Start runs a server until the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t}
	store := gofakes3.New(s3mem.New()).Server()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, code := s.access.refusal(r); status != 0 {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message></Error>", code)
			return
		}
		if r.Header.Get("Content-Length") == "" { // gofakes3 insists on it, also where there is nothing to count
			r.Header.Set("Content-Length", "0")
		}
		store.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it also tells of clients that leave
	server.Start()
	s.Endpoint = server.URL
	s.stop = sync.OnceFunc(func() {
		server.CloseClientConnections()
		server.Close()
	})
	t.Cleanup(s.stop)
	s.connect()
	return s
}

type access struct {
	mu     sync.Mutex
	opened []string // "/bucket/prefix"
}

func (a *access) open(b *Bucket, prefix string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = append(a.opened, "/"+b.Name+"/"+prefix)
	return nil
}

// refusal returns how Amazon S3 refuses a request, and zero when it does not.
func (a *access) refusal(r *http.Request) (status int, code string) {
	given, signed := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=")
	switch {
	case !signed && r.Method == http.MethodGet && a.isOpen(r.URL.Path):
	case !signed:
		return http.StatusForbidden, "AccessDenied"
	case !strings.HasPrefix(given, AccessKey+"/"):
		return http.StatusForbidden, "InvalidAccessKeyId"
	case !isSigned(r, given):
		return http.StatusForbidden, "SignatureDoesNotMatch"
	}
	return 0, ""
}

func (a *access) isOpen(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.opened, func(prefix string) bool {
		bucket, _, _ := strings.Cut(prefix[1:], "/")
		return strings.HasPrefix(path, prefix) || strings.Trim(path, "/") == bucket
	})
}

// isSigned reports whether a request carries the signature of the owner's secret (Amazon S3, "Signature Version 4").
func isSigned(r *http.Request, given string) bool {
	credential, rest, _ := strings.Cut(strings.ReplaceAll(given, ", ", ","), ",SignedHeaders=")
	names, signature, _ := strings.Cut(rest, ",Signature=")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	signed := []string{r.Method, s3utils.EncodePath(r.URL.Path), strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")}
	for name := range strings.SplitSeq(names, ";") {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		signed = append(signed, name+":"+strings.Join(strings.Fields(value), " "))
	}
	signed = append(signed, "", names, r.Header.Get("X-Amz-Content-Sha256"))
	_, scope, _ := strings.Cut(credential, "/")
	text := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s\n%x", r.Header.Get("X-Amz-Date"), scope, sha256.Sum256([]byte(strings.Join(signed, "\n"))))
	return signature == signer.PostPresignSignatureV4(text, at, SecretKey, region) // an HMAC with the key of the day
}
