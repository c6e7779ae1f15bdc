package statemachine

import (
	"slices"

	"troupe/statemachine/internal/chart"
)

// The keys of each element of a definition (statemachine/DEFINITION.md, "Keys").
// Messages list them in this order.
var (
	definitionKeys = []string{
		"$schema", "id", "name", "description", "version", "semantics", "owners", "allow", "unmatched", "const", "context", "create",
		"schema", "indexes", "title", "columns", "events", "stateMachines", "guards", "actions", "webhooks", "schedules", "tags", "meta",
	}
	// documentKeys are those of context, create and schema.
	documentKeys = []string{"svcPublic", "svcPrivate"}
	ownersKeys   = []string{"roles", "privileges", "users"}
	rightKeys    = []string{"create", "read", "send", "invoke"}
	invokerKeys  = []string{"workflows"} // of allow.invoke
	ruleKeys     = []string{"roles", "privileges", "users", "when", "deny"}
	eventKeys    = []string{"data", "into", "apply", "unmatched", "private", "history", "allow", "label", "done", "style", "description"}
	nodeKeys     = []string{
		"type", "initial", "states", "on", "always", "after", "invoke", "entry", "exit", "onDone", "history", "target", "output",
		"label", "tone", "task", "tags", "meta", "description",
	}
	columnKeys     = []string{"path", "label"}
	taskKeys       = []string{"title", "description", "for", "assignee", "due", "priority", "form"}
	transitionKeys = []string{"target", "guard", "allow", "actions", "reenter", "into", "apply", "description"}
	guardKeys      = []string{"type"}
	actionKeys     = []string{"assign", "raise", "send", "cancel", "webhook", "mail", "redirect", "log", "if", "foreach"}
	invokeKeys     = []string{"workflow", "version", "data", "onDone", "onError"}
	raiseKeys      = []string{"event", "data"}
	sendKeys       = []string{"event", "data", "delay", "id"}
	sendOutKeys    = []string{"to", "body"}
	mailKeys       = []string{"to", "subject", "body"}
	webhookKeys    = []string{"url", "retry", "onDone", "onError"}
	scheduleKeys   = []string{"cron", "zone", "create", "missed", "as"}
	retryKeys      = []string{"limit", "delay", "backoff", "jitter", "maxDelay"}
	ifKeys         = []string{"if", "then", "elseif", "else"}
	branchKeys     = []string{"if", "then"} // of elseif
	forEachKeys    = []string{"array", "item", "index", "do"}
	openingKeys    = []string{"target", "actions"} // of initial, and of target of a history node
)

// What the rules of SCXML add (statemachine/DEFINITION.md, "Rules of SCXML").
var (
	scxmlNodeKeys       = append(slices.Clip(nodeKeys), "params")
	scxmlTransitionKeys = append([]string{"event"}, transitionKeys...) // in a list of on
	scxmlSendKeys       = append(slices.Clip(sendKeys), "to", "type", "idTo", "params")
	scxmlInvokeKeys     = []string{"workflow", "version", "type", "id", "idTo", "data", "params", "autoforward", "finalize"}
)

// The words that some of the keys take.
var (
	nodeTypes = map[string]NodeKind{
		"atomic": Atomic, "compound": Compound, "parallel": Parallel, "final": Final, "history": ShallowHistory,
	}
	historyTypes   = map[string]NodeKind{"shallow": ShallowHistory, "deep": DeepHistory}
	unmatchedWords = map[string]chart.Unmatched{
		"record": chart.UnmatchedRecord, "reject": chart.UnmatchedReject, "ignore": chart.UnmatchedIgnore, "apply": chart.UnmatchedApply,
	}
	semanticsWords = map[string]chart.Semantics{"native": chart.NativeSemantics, "scxml": chart.SCXMLSemantics, "xstate": chart.XstateSemantics}
	missedWords    = map[string]Missed{"one": MissedOne, "skip": MissedSkip, "all": MissedAll}
	intoWords      = map[string]chart.Document{"svcPublic": chart.Public, "svcPrivate": chart.Private}
	toneWords      = map[string]Tone{"neutral": Neutral, "waiting": Waiting, "good": Good, "bad": Bad}
	styleWords     = map[string]Style{"default": DefaultStyle, "primary": PrimaryStyle, "danger": DangerStyle}
	applyWords     = map[string]chart.ApplyRule{"merge": chart.ApplyMerge, "replace": chart.ApplyReplace, "none": chart.ApplyNone}
)

// later names keys that definitions are to have, and that this version does not run, with what they
// are for (statemachine/DEFINITION.md, "Later versions").
var later = map[string]string{
	"retention": "how long instances are kept",
}
