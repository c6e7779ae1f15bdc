package metric

import (
	"strconv"

	"troupe/actors/job"
	"troupe/actors/outbox"
)

const (
	latencyName = "troupe_http_request_duration_seconds"
	latencyHelp = "Time from the headers of a request to the end of its answer, streams included."
	syncName    = "troupe_commit_sync_seconds"
	syncHelp    = "Time of one fsync of the store's log."
)

var latencyLabels = []string{"route", "method"}

// families are all metrics but the histograms, part by part.
func (r *Readings) families() (all []family) {
	all = append(all, r.http()...)
	all = append(all, r.instances()...)
	all = append(all, r.automation()...)
	all = append(all, r.jobs()...)
	all = append(all, r.commits()...)
	all = append(all, r.files()...)
	all = append(all, r.users()...)
	all = append(all, r.exported()...)
	if r.Node != nil {
		all = append(all, r.cluster()...)
	}
	return all
}

func (r *Readings) http() []family {
	g := &r.Gateway
	answers := counters("troupe_http_requests_total", "Answered requests. The route is the pattern of its path, or \"outside\" for all unknown ones; the status \"aborted\" stands for answers that were cut off.",
		[]string{"route", "method", "status"})
	for _, a := range g.Answers {
		status := "aborted"
		if a.Status > 0 {
			status = strconv.Itoa(a.Status)
		}
		answers.samples = append(answers.samples, of(a.Count, a.Route, a.Method, status))
	}
	return []family{
		gauges("troupe_build_info", "Always 1; the label has the version.", []string{"version"}, of(1, r.Version)),
		answers,
		gauge("troupe_http_requests_in_flight", "Requests in progress.", g.InFlight),
		gauge("troupe_http_requests_limit", "Limit of requests in flight: requestsMax, or fewer while processors are short.", g.Places),
		gauge("troupe_http_streams_open", "Open event streams.", g.Watchers),
		gauge("troupe_http_connections_open", "Open connections.", g.Connections),
		counters("troupe_http_connections_full_total", "Times that connectionsMax was reached: a connection was closed for a new one (evicted), or the new one waited.", []string{"outcome"},
			of(g.ConnectionsEvicted, "evicted"), of(g.ConnectionsFull, "waited")),
		counters("troupe_http_refused_total", "Requests and event streams refused because of a limit, or of half of it for their user or address.", []string{"kind"},
			of(g.Shed, "request"), of(g.WatchersFull, "stream")),
		counter("troupe_http_panics_total", "Handlers that panicked.", g.Panics),
		counters("troupe_http_forwarded_total", "Requests for another node of the cluster: answered by it, repeated because it did not lead or answer, refused with 503 because no leader was found in time, or with an unknown outcome (504).",
			[]string{"outcome"}, of(g.Forwarded, "answered"), of(g.ForwardRepeated, "repeated"), of(g.ForwardRefused, "refused"), of(g.ForwardUnknown, "unknown")),
		counter("troupe_http_taken_total", "Requests that other nodes forwarded to this one.", g.Taken),
		counter("troupe_http_leader_waits_total", "Requests that waited for a leader.", g.LeaderWaits),
		gauge("troupe_http_leader_waiting", "Requests that wait for a leader.", g.LeaderWaiting),
	}
}

func (r *Readings) instances() []family {
	w := &r.Workflow
	return []family{
		gauge("troupe_instances_awake", "Active instances.", w.Awake),
		gauge("troupe_instances_awake_bytes", "Approximate memory of active instances.", w.AwakeBytes),
		gauge("troupe_instances_requests_in_flight", "Requests at instances, those that wait in their queues included.", w.InFlight),
		counter("troupe_instances_woken_total", "Instances activated, new ones included.", w.Woken),
		counter("troupe_instances_slept_total", "Instances passivated.", w.Slept),
		counter("troupe_creates_total", "Instances created, those of forms included.", w.Creates),
		counter("troupe_events_total", "Events handled, those of forms included.", w.Events),
		counters("troupe_instances_deleted_total", "Instances deleted, by cause: request, cascade for those that a deleted one had invoked, bulk, and retention.", []string{"cause"},
			of(w.DeletedByRequest, "request"), of(w.DeletedByCascade, "cascade"), of(w.DeletedByBulk, "bulk"), of(w.DeletedByRetention, "retention")),
		counters("troupe_refused_total", "Creates, events and queries refused, by cause: capacity for a limit of the server, quota for one of the user.", []string{"cause"},
			of(w.Refused, "capacity"), of(w.OverQuota, "quota")),
		counters("troupe_panics_total", "Panics, in instances or in background work that continued.", []string{"where"},
			of(w.Panics, "instance"), of(w.Recovered, "background")),
		counter("troupe_instances_damaged_total", "Instances, histories and rows that could not be read.", w.Damaged),
		counter("troupe_instances_restarts_total", "Instances restarted after a panic.", w.Restarts),
		counter("troupe_instances_rests_total", "Pauses of instances that panicked more than ten times in a minute.", w.Rests),
		counter("troupe_dead_letters_total", "Messages to actors that had ended.", w.DeadLetters),
	}
}

func (r *Readings) automation() []family {
	w := &r.Workflow
	all := []family{
		counter("troupe_incidents_total", "Events and creates that failed: of timers and deliveries, and of callers who got 500, a MarshallingError.", w.Incidents),
		counter("troupe_timers_fired_total", "Timers fired.", w.Timers.Fired),
		counter("troupe_timers_late_seconds_total", "Sum of the delays of fired timers.", float64(w.Timers.LateSum)/1000),
		counter("troupe_timers_retries_total", "Retries of timers whose instance accepted none.", w.Timers.Again),
		counters("troupe_outbox_attempts_total", "Attempts to deliver, by outcome; failed ones are retried, dead ones are not.", []string{"outcome"},
			of(w.Outbox.Delivered, "delivered"), of(w.Outbox.Failed, "failed"), of(w.Outbox.Dead, "dead")),
	}
	waiting := []family{
		gauges("troupe_tasks_open", "Open tasks, claimed or not.", nil),
		gauges("troupe_incidents_open", "Incidents that nobody has resolved.", nil),
		gauges("troupe_timers_due", "Timers whose deadline has passed and that have not fired.", nil),
		gauges("troupe_outbox_pending", "Deliveries that are still tried, by kind: webhook, mail or invoke (messages to children and parents).", []string{"kind"}),
		gauges("troupe_outbox_dead", "Deliveries that are no longer tried, by kind.", []string{"kind"}),
	}
	if c := r.Waiting; c != nil {
		waiting[0].samples = []sample{of(c.TasksOpen)}
		waiting[1].samples = []sample{of(c.IncidentsOpen)}
		waiting[2].samples = []sample{of(c.TimersDue)}
		for _, kind := range outbox.Kinds {
			waiting[3].samples = append(waiting[3].samples, of(c.Pending[kind], kind))
			waiting[4].samples = append(waiting[4].samples, of(c.Dead[kind], kind))
		}
	}
	return append(all, waiting...)
}

const (
	jobTypesMax   = 100 // that have samples of their own
	otherJobTypes = "other"
)

func (r *Readings) jobs() []family {
	label := []string{"type"}
	waiting := gauges("troupe_jobs_waiting", "Jobs that wait for a worker or for their next attempt, of the shards that this node leads, by type; above 100 types the rest is other.", label)
	running := gauges("troupe_jobs_running", "Jobs that workers have.", label)
	failed := gauges("troupe_jobs_failed", "Jobs whose attempts have all failed and whose instance still waits.", label)
	oldest := gauges("troupe_jobs_oldest_seconds", "Age of the oldest waiting job.", label)
	var rest job.TypeCount
	add := func(c *job.TypeCount, name string) {
		waiting.samples = append(waiting.samples, of(c.Waiting, name))
		running.samples = append(running.samples, of(c.Running, name))
		failed.samples = append(failed.samples, of(c.Failed, name))
		if !c.Oldest.IsZero() {
			oldest.samples = append(oldest.samples, of(max(r.Now.Sub(c.Oldest).Seconds(), 0), name))
		}
	}
	for i := range r.JobTypes {
		c := &r.JobTypes[i]
		if i < jobTypesMax {
			add(c, c.Type)
			continue
		}
		rest.Waiting, rest.Running, rest.Failed = rest.Waiting+c.Waiting, rest.Running+c.Running, rest.Failed+c.Failed
		if rest.Oldest.IsZero() || !c.Oldest.IsZero() && c.Oldest.Before(rest.Oldest) {
			rest.Oldest = c.Oldest
		}
	}
	if len(r.JobTypes) > jobTypesMax {
		add(&rest, otherJobTypes)
	}
	return []family{
		waiting, running, failed, oldest,
		counter("troupe_jobs_activated_total", "Leases given to workers.", r.Jobs.Activated),
		counter("troupe_jobs_completed_total", "Jobs completed.", r.Jobs.Completed),
		counter("troupe_jobs_attempts_failed_total", "Attempts that workers said have failed.", r.Jobs.Failed),
		counter("troupe_jobs_leases_expired_total", "Attempts whose lease ran out.", r.Jobs.Expired),
	}
}

func (r *Readings) commits() []family {
	s := &r.Store
	all := []family{
		counter("troupe_commits_total", "Batches acknowledged as durable.", s.Committed),
		counter("troupe_commits_applied_total", "Batches applied, durable or not.", s.Appended),
		counter("troupe_commit_bytes_total", "Size of the applied batches in the log.", s.AppendedBytes),
		counters("troupe_commits_failed_total", "Batches that were not acknowledged: refused unapplied, or with an unknown outcome.", []string{"outcome"},
			of(s.Refused, "refused"), of(s.Unknown, "unknown")),
		gauge("troupe_commits_waiting", "Unanswered commits.", s.Waiting),
		gauge("troupe_commits_waiting_bytes", "Bytes appended that are not durable yet.", r.BacklogBytes),
		counter("troupe_commit_barriers_total", "Waits for earlier writes.", s.Barriers),
		counter("troupe_commit_stalls_total", "Times that commits did not get through.", s.Stalls),
		counter("troupe_store_write_stalls_total", "Times that the database held writers back.", s.WriteStalls),
		counter("troupe_store_slow_disk_total", "Disk operations of several seconds.", s.SlowDisk),
		counters("troupe_store_errors_total", "Failures, by kind: background is a failed flush or compaction, read a read of damaged data, block a damaged block, checkpoint an integrity checkpoint that could not be written.",
			[]string{"kind"}, of(s.BackgroundErrors, "background"), of(s.CorruptReads, "read"), of(s.CorruptBlocks, "block"), of(s.CheckpointErrors, "checkpoint")),
		counter("troupe_store_checkpoints_total", "Integrity checkpoints written.", s.CheckpointWrites),
		counter("troupe_store_compactions_total", "Compactions of the database.", s.Compactions),
		gauge("troupe_store_compaction_debt_bytes", "Estimate of the bytes that have to be compacted.", s.DebtBytes),
		gauge("troupe_store_disk_bytes", "Size of the store.", s.DiskBytes),
		gauge("troupe_store_tables", "Tables of the database.", s.Tables),
		gauge("troupe_store_cache_bytes", "Cached blocks.", s.CacheBytes),
	}
	free := gauges("troupe_store_free_bytes", "Free space of the file system, where it is known.", nil)
	if s.FreeBytes >= 0 {
		free.samples = []sample{of(s.FreeBytes)}
	}
	return append(all, free)
}

func (r *Readings) files() []family {
	f := &r.Repository
	p, t, s := &r.Portal, &r.Template.Supervisor, &f.Supervisor
	part := []string{"part"}
	each := func(portal, template, repository int64) []sample {
		return []sample{of(portal, "form-portal"), of(template, "template"), of(repository, "repository")}
	}
	used := []family{
		gauges("troupe_worker_requests_open", "Requests in progress or waiting.", part, each(p.Open, t.Open, s.Open)...),
		counters("troupe_worker_requests_total", "Requests started.", part, each(p.Begun, t.Begun, s.Begun)...),
		counters("troupe_worker_refused_total", "Requests refused because no worker was free in time.", part, each(p.Refused, t.Refused, s.Refused)...),
		counters("troupe_worker_panics_total", "Workers that panicked.", part, each(p.Panics, t.Panics, s.Panics)...),
		counters("troupe_template_reads_total", "Templates read: parsed, or from the cache.", []string{"from"}, of(r.Template.Parsed, "file"), of(r.Template.Cached, "cache")),
		gauge("troupe_repository_files", "Indexed files.", f.Files),
		gauge("troupe_repository_folders", "Indexed folders.", f.Folders),
		gauge("troupe_repository_scan_seconds", "Duration of the last full scan.", f.Last.Took.Seconds()),
		gauges("troupe_repository_left_out", "What the last full scan left out.", []string{"cause"},
			of(f.Last.Unreadable, "unreadable"), of(f.Last.Left, "name"), of(f.Last.Unwatched, "unwatched"), of(f.Last.TooDeep, "depth")),
		counters("troupe_repository_scans_total", "Scans: of everything, or of a folder.", []string{"of"}, of(f.Walks, "everything"), of(f.Lists, "folder")),
		counters("troupe_repository_changes_total", "Change notifications; lost ones did not say what changed.", []string{"kind"}, of(f.Changes, "seen"), of(f.Lost, "lost")),
		counters("troupe_repository_requests_total", "Requests for lists and for files.", []string{"kind"}, of(f.Listed, "list"), of(f.Opened, "file")),
		counter("troupe_repository_waits_total", "Lists that waited for the index.", f.Waited),
	}
	reload := []family{
		counters("troupe_reloads_total", "Reloads of changed text files, by set (access, definitions) and outcome.", []string{"set", "outcome"}),
		gauges("troupe_reload_pending", "1 while the newest files of a set are not in use.", []string{"set"}),
		gauges("troupe_reload_errors", "Errors in those files.", []string{"set"}),
	}
	for set, files := range r.Reloads {
		pending := 0
		if files.Pending {
			pending = 1
		}
		reload[0].samples = append(reload[0].samples, of(files.Used, set, "used"), of(files.Refused, set, "refused"))
		reload[1].samples = append(reload[1].samples, of(pending, set))
		reload[2].samples = append(reload[2].samples, of(files.Errors, set))
	}
	return append(used, reload...)
}

func (r *Readings) users() []family {
	i := &r.Identity
	return []family{
		counters("troupe_sign_ins_total", "Sign-ins; failed ones had a wrong user or password, refused ones came too soon after those.", []string{"outcome"},
			of(i.SignIns, "accepted"), of(i.SignInsFailed, "failed"), of(i.SignInsRefused, "refused")),
		gauge("troupe_credentials", "Tokens and sessions in memory, ended ones included.", i.Credentials),
		gauge("troupe_credentials_damaged", "Rows that the start could not read: these credentials or passwords are refused.", i.Corrupt),
		counters("troupe_credentials_refused_total", "Refusals: of credentials that were presented, and of new ones because there are too many.", []string{"kind"},
			of(i.Refused, "presented"), of(i.Full, "new")),
		counter("troupe_credentials_write_failures_total", "Background writes of credentials that the store did not confirm.", i.WriteFailed),
		gauge("troupe_password_hashes_waiting", "Password hashes that wait for a core.", i.HashesWaiting),
		counter("troupe_password_hashes_refused_total", "Password hashes refused because too many waited.", i.HashesRefused),
	}
}

func (r *Readings) exported() []family {
	label := []string{"export"}
	all := []family{
		counters("troupe_export_rows_total", "Rows that the target of an export has confirmed.", label),
		counters("troupe_export_failures_total", "Attempts of an export that are repeated.", label),
		counters("troupe_export_gaps_total", "Times that entries were missing in an export, because the change feed no longer had them.", label),
		gauges("troupe_export_lag_seconds", "How long the oldest entry has waited that the target has not confirmed.", label),
		gauges("troupe_export_position_timestamp_seconds", "When the newest entry was committed that the target has confirmed, in Unix time; 0 if none since the start.", label),
	}
	for _, e := range r.Exports {
		all[0].samples = append(all[0].samples, of(e.Rows, e.Name))
		all[1].samples = append(all[1].samples, of(e.Failures, e.Name))
		all[2].samples = append(all[2].samples, of(e.Gaps, e.Name))
		all[3].samples = append(all[3].samples, of(e.LagSeconds, e.Name))
		all[4].samples = append(all[4].samples, of(e.Position, e.Name))
	}
	return all
}

func (r *Readings) cluster() []family {
	n := r.Node
	return []family{
		gauge("troupe_cluster_nodes", "Nodes of the cluster.", n.Nodes),
		gauge("troupe_cluster_nodes_alive", "Nodes that answer, this one included.", n.Alive),
		gauge("troupe_cluster_stale_seconds", "Age of this node's view of the cluster's own shard.", n.SecondsStale),
		gauge("troupe_raft_shards_led", "Shards that this node leads, the cluster's own included.", n.Led),
		gauge("troupe_raft_shards_held", "Shards of which this node has a replica.", n.Held),
		gauge("troupe_raft_shards_short", "Shards of the cluster with too few live votes.", n.Short),
		gauge("troupe_raft_lag_entries", "Entries that the slowest replica of this node lacks.", n.Lag),
		counter("troupe_raft_moves_total", "Changes of replicas that this node made.", n.Moves),
		counter("troupe_raft_hand_overs_total", "Leaderships that this node transferred.", n.HandOvers),
		gauges("troupe_cluster_connections_open", "Connections of the cluster port: all, and those of others that have not shown who they are.", []string{"kind"},
			of(n.Port.Connections, "all"), of(n.Port.Handshakes, "handshake")),
		counters("troupe_cluster_connections_closed_total", "Connections that the cluster port closed: too many, not of a node, for no shard of this node, or too many that join.", []string{"cause"},
			of(n.Port.Refused, "full"), of(n.Port.HandshakesFailed, "handshake"), of(n.Port.StreamsUnwanted, "unwanted"), of(n.Port.JoinsRefused, "joins")),
	}
}
