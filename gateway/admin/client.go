package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
	"unicode/utf8"

	"troupe/actors/export"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/statemachine/document"
)

// Client sends requests to the server at a socket. Its methods may be called by any number of goroutines. Errors of the
// server are of the same kinds of package failure as those of the identity service, and read the same.
type Client struct {
	path string
	http http.Client
}

// Dial makes a client after it has found that somebody listens at the socket;
// otherwise it answers ErrNoServer. There is nothing to close.
func Dial(ctx context.Context, path string) (*Client, error) {
	probe, err := connect(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	_ = probe.Close()
	c := &Client{path: path}
	c.http.Transport = Transport(path)
	return c, nil
}

// Transport sends requests to the socket at path, whichever host they name. Errors wrap ErrNoServer when nobody listens.
func Transport(path string) http.RoundTripper {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return connect(ctx, path)
		},
	}
}

// Create makes a token or a session, as identity.Service does: the secret exists nowhere else. An error beside
// ErrNoServer and those of package failure other than failure.ErrOutcomeUnknown leaves it open whether the credential
// was made; the list shows it.
func (c *Client) Create(ctx context.Context, kind identity.Kind, request identity.CreateCredential) (secret string, made identity.Credential, err error) {
	body := createRequest{User: string(request.User), Note: request.Note}
	if request.Expires != 0 {
		body.Expires = request.Expires.String()
	}
	answer, err := call[createReply](ctx, c, http.MethodPost, pathOf(kind), body)
	return answer.Secret, answer.Credential, err
}

// Credentials lists the credentials of one kind, oldest first.
func (c *Client) Credentials(ctx context.Context, kind identity.Kind) ([]identity.Credential, error) {
	answer, err := call[credentialList](ctx, c, http.MethodGet, pathOf(kind), nil)
	return answer.Credentials, err
}

// Revoke is that of identity.Service. Doing it again is not an error.
func (c *Client) Revoke(ctx context.Context, kind identity.Kind, id string) error {
	_, err := call[emptyReply](ctx, c, http.MethodDelete, pathOf(kind)+"/"+url.PathEscape(id), nil)
	return err
}

// SetPassword is that of identity.Service. An error beside ErrNoServer and those of package failure other than
// failure.ErrOutcomeUnknown leaves it open whether the password was set. A password that is not valid UTF-8 is
// failure.ErrInvalid here already: JSON would change it.
func (c *Client) SetPassword(ctx context.Context, user identity.UserID, password string) error {
	if !utf8.ValidString(password) {
		return fmt.Errorf("set password of %q: %w", user, failure.Refuse(failure.ErrInvalid, "the password is not valid UTF-8"))
	}
	_, err := call[emptyReply](ctx, c, http.MethodPut, pathPassword, passwordRequest{User: string(user), Password: password})
	return err
}

// Check returns the faults for which the server would refuse the definitions in its
// home now, and what else it says of them.
func (c *Client) Check(ctx context.Context) (faults, warnings document.Faults, err error) {
	answer, err := call[faultList](ctx, c, http.MethodGet, pathFaults, nil)
	return faultsFromWire(answer.Faults), faultsFromWire(answer.Warnings), err
}

// Actors returns the tree of the server's actors, as JSON.
func (c *Client) Actors(ctx context.Context) ([]byte, error) {
	return call[json.RawMessage](ctx, c, http.MethodGet, pathActors, nil)
}

// Exports returns how far the exports of the settings are.
func (c *Client) Exports(ctx context.Context) ([]export.Status, error) {
	answer, err := call[exportList](ctx, c, http.MethodGet, pathExports, nil)
	return answer.Exports, err
}

// Publish makes a packed home what is in use in the cluster; dryRun only checks it. The
// error is document.Faults when the home has some; then nothing was changed.
func (c *Client) Publish(ctx context.Context, archive []byte, dryRun bool) (api.PublishedHome, error) {
	path := pathHome
	if dryRun {
		path += "?dryRun=true"
	}
	answer, err := call[publishReply](ctx, c, http.MethodPut, path, archive)
	if err != nil {
		return api.PublishedHome{}, err
	}
	if len(answer.Faults) > 0 {
		return api.PublishedHome{}, faultsFromWire(answer.Faults)
	}
	return answer.PublishedHome, nil
}

// Checkpoint has the server make a checkpoint of its store, in a folder below that of the store. The folder is there until
// done is called, or the server stops, which closes stopped.
func (c *Client) Checkpoint(ctx context.Context) (folder string, stopped <-chan struct{}, done func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	response, err := c.send(ctx, http.MethodPost, pathMoment, nil) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		cancel()
		return "", nil, nil, err
	}
	var answer checkpointReply
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		cancel()
		return "", nil, nil, errors.Join(fmt.Errorf("%w: the answer is not valid: %w", ErrFailed, err), response.Body.Close())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, response.Body) // it ends with the connection
		_ = response.Body.Close()
	}()
	return answer.Folder, ended, func() { cancel(); <-ended }, nil
}

// call sends one request and reads its answer. The body is JSON, []byte is sent as it is, and nil sends none.
func call[O any](ctx context.Context, c *Client, method, path string, body any) (answer O, err error) {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return *new(O), fmt.Errorf("%w: the answer is not valid: %w", ErrFailed, err)
	}
	return answer, nil
}

// send returns an answer that is none of an error; its body must be closed.
func (c *Client) send(ctx context.Context, method, path string, body any) (_ *http.Response, err error) {
	text, _ := body.([]byte)
	if body != nil && text == nil {
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://admin"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		// NB: url.Error only adds an address that does not exist.
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			err = fmt.Errorf("it ended before it answered (%w)", err)
		}
		return nil, fmt.Errorf("ask the server at %s: %w", c.path, err)
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		return nil, readError(response.Body)
	}
	return response, nil
}

// remoteError is an error of the server: its text, and the cause that it wraps.
type remoteError struct {
	cause error
	text  string
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() error { return e.cause }

func readError(body io.Reader) error {
	var f errorReply
	if err := json.NewDecoder(body).Decode(&f); err != nil {
		return fmt.Errorf("%w: the answer is not valid: %w", ErrFailed, err)
	}
	return &remoteError{cause: causeOf(f.Error), text: f.Message}
}

// Invite makes a key with which one node can join the cluster.
func (c *Client) Invite(ctx context.Context, expires time.Duration) (string, error) {
	answer, err := call[inviteReply](ctx, c, http.MethodPost, pathInvite, inviteRequest{expires})
	return answer.Key, err
}

// ClusterStatus returns what the node knows of the cluster, as JSON.
func (c *Client) ClusterStatus(ctx context.Context) ([]byte, error) {
	return call[json.RawMessage](ctx, c, http.MethodGet, pathCluster, nil)
}

// RemoveNode begins the removal of a node; lost: it will not come back.
func (c *Client) RemoveNode(ctx context.Context, node string, lost bool) error {
	path := pathNodes + "/" + url.PathEscape(node)
	if lost {
		path += "?lost=true"
	}
	_, err := call[emptyReply](ctx, c, http.MethodDelete, path, nil)
	return err
}
