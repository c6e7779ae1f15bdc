package clause

import (
	"slices"

	"troupe/statemachine/internal/chart"
)

// The keys of each element of a definition (statemachine/DEFINITION.md, "Keys"). Messages list them in this order.
var (
	DefinitionKeys = []string{
		"$schema", "id", "name", "description", "version", "semantics", "owners", "allow", "unmatched", "const", "context", "create",
		"schema", "key", "indexes", "title", "columns", "events", "stateMachines", "guards", "actions", "webhooks", "schedules", "jobs", "retention", "tags", "meta",
	}
	// DocumentKeys are those of context, create and schema.
	DocumentKeys = []string{"svcPublic", "svcPrivate"}
	OwnersKeys   = []string{"roles", "privileges", "users"}
	RightKeys    = []string{"create", "read", "send", "invoke"}
	InvokerKeys  = []string{"workflows"} // of allow.invoke
	RuleKeys     = []string{"roles", "privileges", "users", "when", "deny"}
	EventKeys    = []string{"data", "into", "apply", "unmatched", "private", "history", "allow", "label", "done", "style", "description"}
	NodeKeys     = []string{
		"type", "initial", "states", "on", "always", "after", "invoke", "entry", "exit", "onDone", "history", "target", "output",
		"label", "tone", "task", "tags", "meta", "description",
	}
	ColumnKeys     = []string{"path", "label"}
	TaskKeys       = []string{"title", "description", "for", "assignee", "due", "priority", "form"}
	TransitionKeys = []string{"target", "guard", "allow", "actions", "reenter", "into", "apply", "description"}
	GuardKeys      = []string{"type"}
	ActionKeys     = []string{"assign", "raise", "send", "cancel", "webhook", "mail", "redirect", "log", "if", "foreach"}
	InvokeKeys     = []string{"workflow", "version", "job", "priority", "data", "onDone", "onError"}
	JobKeys        = []string{"allow", "retry", "timeout", "running", "perSecond", "output", "description"}
	RaiseKeys      = []string{"event", "data"}
	SendKeys       = []string{"event", "data", "delay", "id"}
	SendOutKeys    = []string{"to", "body"}
	MailKeys       = []string{"to", "subject", "body"}
	WebhookKeys    = []string{"url", "retry", "onDone", "onError"}
	ScheduleKeys   = []string{"cron", "zone", "create", "missed", "as"}
	RetentionKeys  = []string{"done"}
	RetryKeys      = []string{"limit", "delay", "backoff", "jitter", "maxDelay"}
	IfKeys         = []string{"if", "then", "elseif", "else"}
	BranchKeys     = []string{"if", "then"} // of elseif
	ForEachKeys    = []string{"array", "item", "index", "do"}
	OpeningKeys    = []string{"target", "actions"} // of initial, and of target of a history node
)

// What the rules of SCXML add (statemachine/DEFINITION.md, "Rules of SCXML").
var (
	SCXMLNodeKeys       = append(slices.Clip(NodeKeys), "params")
	SCXMLTransitionKeys = append([]string{"event"}, TransitionKeys...) // in a list of on
	SCXMLSendKeys       = append(slices.Clip(SendKeys), "to", "type", "idTo", "params")
	SCXMLInvokeKeys     = []string{"workflow", "version", "type", "id", "idTo", "data", "params", "autoforward", "finalize"}
)

// The words that some of the keys take.
var (
	NodeTypes = map[string]chart.NodeKind{
		"atomic": chart.Atomic, "compound": chart.Compound, "parallel": chart.Parallel, "final": chart.Final, "history": chart.ShallowHistory,
	}
	HistoryTypes   = map[string]chart.NodeKind{"shallow": chart.ShallowHistory, "deep": chart.DeepHistory}
	UnmatchedWords = map[string]chart.Unmatched{
		"record": chart.UnmatchedRecord, "reject": chart.UnmatchedReject, "ignore": chart.UnmatchedIgnore, "apply": chart.UnmatchedApply,
	}
	SemanticsWords = map[string]chart.Semantics{"native": chart.NativeSemantics, "scxml": chart.SCXMLSemantics, "xstate": chart.XstateSemantics}
	MissedWords    = map[string]chart.Missed{"one": chart.MissedOne, "skip": chart.MissedSkip, "all": chart.MissedAll}
	IntoWords      = map[string]chart.Document{"svcPublic": chart.Public, "svcPrivate": chart.Private}
	ToneWords      = map[string]chart.Tone{"neutral": chart.Neutral, "waiting": chart.Waiting, "good": chart.Good, "bad": chart.Bad}
	StyleWords     = map[string]chart.Style{"default": chart.DefaultStyle, "primary": chart.PrimaryStyle, "danger": chart.DangerStyle}
	ApplyWords     = map[string]chart.ApplyRule{"merge": chart.ApplyMerge, "replace": chart.ApplyReplace, "none": chart.ApplyNone}
)
