package instances

import (
	"encoding/hex"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/workflow/batch"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
)

// Routes is group B.
func (g *Group) Routes() []kernel.Route {
	base := kernel.Route{Group: kernel.GroupWorkflow, Access: kernel.SignedIn(identity.Token | identity.Session), Path: kernel.WorkflowPath}
	row := base.Row
	base.Strict = true
	strict := base.Row
	batch := row("batch", "POST", "/events", g.sendBatch)
	batch.ReadsBody = true
	base.Privilege = identity.Workflows
	exports := base.Row
	return []kernel.Route{
		row("create", "POST", "/create", g.createInstance),
		row("event", "POST", "/event", g.sendEvent),
		batch,
		row("instance", "GET", "/instance/:workflowId/:instanceId", g.loadInstance, "at"),
		row("instances", "GET", "/instances/:workflowId", g.queryInstances, "filter", "limit", "cursor", "sort", "fields", "count", "explain"),
		row("choices", "GET", "/choices", g.listChoices),
		row("events", "GET", "/instance/:workflowId/:instanceId/events", g.listEvents),
		row("history", "GET", "/instance/:workflowId/:instanceId/history", g.listHistory, "limit", "cursor", "fields", "order"),
		strict("changes", "GET", "/changes", g.listChanges, "since", "workflowId", "limit", "wait"),
		exports("export", "GET", "/export", g.exportChanges, "since", "workflowId", "limit", "wait"),
		strict("watch", "GET", "/watch/:workflowId", g.watchInstances, "filter"),
		strict("watch-instance", "GET", "/watch/:workflowId/:instanceId", g.watchInstances, "filter"),
	}
}

func (g *Group) sendBatch(x *kernel.Exchange) error {
	if x.Sender != nil && x.Sender.Part != nil {
		return g.sendPart(x)
	}
	run := &batchRun{x: x, workflows: g.Workflows, shares: &g.Shares, results: parse.IsLines(x.Request.Header)}
	key, err := parse.IdempotencyKey(x.Request.Header["Idempotency-Key"])
	if err != nil {
		return err
	}
	run.represent = parse.PreferredReturn(x.Request.Header["Prefer"]) == "representation"
	defer g.ReleaseBody(x)
	if run.results && key == "" {
		if err := g.keepLines(x, LineBytes); err != nil {
			return err
		}
		run.source = g.streamItems(x)
	} else if run.source, err = g.readItems(x, run.results); err != nil {
		return err
	}
	defer run.source.close()
	if key != "" {
		retry := message.Retry{Key: key, Fingerprint: run.source.fingerprint(x)}
		if err := g.keepKey(x, retry); err != nil {
			return err
		}
		run.key = key
	}
	var forwarder batch.Forwarder
	if g.Forwarder.Peers != nil {
		f := newBatchForwarder(x, g.Forwarder, key)
		defer f.stop()
		forwarder = f
	}
	run.batch = batch.New(g.Workflows, forwarder)
	defer run.occupy(false)
	return run.do()
}

// sendPart answers a part that another node has sent. The answer is that to an array.
func (g *Group) sendPart(x *kernel.Exchange) error {
	defer g.ReleaseBody(x)
	p := x.Sender.Part
	source, err := g.readItems(x, false)
	if err != nil {
		return err
	}
	if p.Key != "" && len(p.Numbers) != len(source.items) {
		return parse.Malformed("a part has %d numbers for %d items", len(p.Numbers), len(source.items))
	}
	if p.Keep != "" {
		retry := message.Retry{Key: p.Key}
		if n, err := hex.Decode(retry.Fingerprint[:], []byte(p.Keep)); err != nil || n != len(retry.Fingerprint) {
			return parse.Malformed("a part has no fingerprint")
		}
		if err := g.Workflows.KeepKey(x.Caller, retry); err != nil {
			return err
		}
	}
	run := &batchRun{
		x: x, workflows: g.Workflows, shares: &g.Shares, source: source, batch: batch.New(g.Workflows, nil), key: p.Key, numbers: p.Numbers,
		represent: parse.PreferredReturn(x.Request.Header["Prefer"]) == "representation",
	}
	defer source.close()
	defer run.occupy(false)
	return run.do()
}
