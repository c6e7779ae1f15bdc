package client

import (
	"context"
	"net/http"
	"net/url"

	"troupe/gateway/api"
)

// PublishHome makes a home, a tar archive of its text files, what is in use in the cluster; with dryRun it is only
// checked. Errors wrap *Error, which has the faults of a home that was refused, ErrProtocol, or the context's. After
// one of the network it may have been published: publishing it again does no harm.
func (c *Client) PublishHome(ctx context.Context, archive []byte, dryRun bool) (published api.PublishedHome, err error) {
	defer asking(&err, "publish a home")
	r := &request{method: http.MethodPut, base: api.AdminPath, path: []string{"home"}, body: archive, content: "application/x-tar"}
	if dryRun {
		r.query = url.Values{"dryRun": {"true"}}
	}
	a, err := c.call(ctx, r)
	if err != nil {
		return published, err
	}
	return published, decode(a.body, &published)
}
