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
	"time"
	"unicode/utf8"

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
	var answer createReply
	if err := c.call(ctx, http.MethodPost, pathOf(kind), body, &answer); err != nil {
		return "", identity.Credential{}, err
	}
	return answer.Secret, fromWire(answer.Credential), nil
}

// Credentials lists the credentials of one kind, oldest first.
func (c *Client) Credentials(ctx context.Context, kind identity.Kind) ([]identity.Credential, error) {
	var answer credentialList
	if err := c.call(ctx, http.MethodGet, pathOf(kind), nil, &answer); err != nil {
		return nil, err
	}
	credentials := make([]identity.Credential, len(answer.Credentials))
	for i, wire := range answer.Credentials {
		credentials[i] = fromWire(wire)
	}
	return credentials, nil
}

// Revoke is that of identity.Service. Doing it again is no error.
func (c *Client) Revoke(ctx context.Context, kind identity.Kind, id string) error {
	return c.call(ctx, http.MethodDelete, pathOf(kind)+"/"+url.PathEscape(id), nil, new(emptyReply))
}

// SetPassword is that of identity.Service. An error beside ErrNoServer and those of package failure other than
// failure.ErrOutcomeUnknown leaves it open whether the password was set. A password that is not valid UTF-8 is
// failure.ErrInvalid here already: JSON would change it.
func (c *Client) SetPassword(ctx context.Context, user identity.UserID, password string) error {
	if !utf8.ValidString(password) {
		return fmt.Errorf("set password of %q: %w", user, failure.Refuse(failure.ErrInvalid, "the password is not valid UTF-8"))
	}
	return c.call(ctx, http.MethodPut, pathPassword, passwordRequest{User: string(user), Password: password}, new(emptyReply))
}

// Check returns the faults for which the server would refuse the definitions in its
// home now, and what else it says of them.
func (c *Client) Check(ctx context.Context) (faults, warnings document.Faults, err error) {
	var answer faultList
	if err := c.call(ctx, http.MethodGet, pathFaults, nil, &answer); err != nil {
		return nil, nil, err
	}
	return faultsFromWire(answer.Faults), faultsFromWire(answer.Warnings), nil
}

// Actors returns the tree of the server's actors, as JSON.
func (c *Client) Actors(ctx context.Context) ([]byte, error) {
	var answer json.RawMessage
	err := c.call(ctx, http.MethodGet, pathActors, nil, &answer)
	return answer, err
}

// Publish makes a packed home what is in use in the cluster; dryRun only checks it. The
// error is document.Faults when the home has some; then nothing was changed.
func (c *Client) Publish(ctx context.Context, archive []byte, dryRun bool) (api.PublishedHome, error) {
	var answer publishReply
	path := pathHome
	if dryRun {
		path += "?dryRun=true"
	}
	if err := c.send(ctx, http.MethodPut, path, bytes.NewReader(archive), &answer); err != nil {
		return api.PublishedHome{}, err
	}
	if len(answer.Faults) > 0 {
		return api.PublishedHome{}, faultsFromWire(answer.Faults)
	}
	return answer.PublishedHome, nil
}

// call sends one request and reads its answer. A nil body sends none; answer is
// a pointer to what the server says on success.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	return c.send(ctx, method, path, content, answer)
}

func (c *Client) send(ctx context.Context, method, path string, content io.Reader, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://admin"+path, content)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		// NB: url.Error only adds an address that does not exist.
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("ask the server at %s: %w", c.path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return readError(response.Body)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("%w: the answer is not valid: %w", ErrFailed, err)
	}
	return nil
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
	var answer inviteReply
	err := c.call(ctx, http.MethodPost, pathInvite, inviteRequest{expires}, &answer)
	return answer.Key, err
}

// ClusterStatus returns what the node knows of the cluster, as JSON.
func (c *Client) ClusterStatus(ctx context.Context) ([]byte, error) {
	var answer json.RawMessage
	err := c.call(ctx, http.MethodGet, pathCluster, nil, &answer)
	return answer, err
}

// RemoveNode begins the removal of a node; lost: it will not come back.
func (c *Client) RemoveNode(ctx context.Context, node string, lost bool) error {
	path := pathNodes + "/" + url.PathEscape(node)
	if lost {
		path += "?lost=true"
	}
	return c.call(ctx, http.MethodDelete, path, nil, new(emptyReply))
}
