package audit

import "slices"

// Action says what somebody did. The list is closed: gateway/INTERFACE.md, "The audit log".
type Action string

const (
	SignIn            Action = "signin"
	SignInRefuse      Action = "signin.refuse"
	SignOut           Action = "signout"
	AccessRefuse      Action = "access.refuse"
	SessionCreate     Action = "session.create"
	SessionRevoke     Action = "session.revoke"
	TokenCreate       Action = "token.create"
	TokenRevoke       Action = "token.revoke"
	PasswordSet       Action = "password.set"
	RightsChange      Action = "rights.change"
	HomePublish       Action = "home.publish"
	HomeReload        Action = "home.reload"
	DefinitionPublish Action = "definition.publish"
	DefinitionRetire  Action = "definition.retire"
	InstanceRead      Action = "instance.read"
	InstanceList      Action = "instance.list"
	InstanceStop      Action = "instance.stop"
	InstanceMigrate   Action = "instance.migrate"
	InstanceReset     Action = "instance.reset"
	InstanceDelete    Action = "instance.delete"
	BulkStart         Action = "bulk.start"
	BulkPause         Action = "bulk.pause"
	BulkResume        Action = "bulk.resume"
	BulkCancel        Action = "bulk.cancel"
	JobRetry          Action = "job.retry"
	JobCancel         Action = "job.cancel"
	TaskAssign        Action = "task.assign"
	TaskRelease       Action = "task.release"
	DeliveryRetry     Action = "delivery.retry"
	DeliveryDrop      Action = "delivery.drop"
	IncidentRetry     Action = "incident.retry"
	IncidentDrop      Action = "incident.drop"
	SchedulePause     Action = "schedule.pause"
	ScheduleResume    Action = "schedule.resume"
	ScheduleRun       Action = "schedule.run"
	StoreBackup       Action = "store.backup"
	StoreRestore      Action = "store.restore"
	StoreExport       Action = "store.export"
	StoreImport       Action = "store.import"
	StoreCompact      Action = "store.compact"
	NodeRemove        Action = "node.remove"
)

var actions = []Action{
	SignIn, SignInRefuse, SignOut, AccessRefuse, SessionCreate, SessionRevoke, TokenCreate, TokenRevoke, PasswordSet,
	RightsChange, HomePublish, HomeReload, DefinitionPublish, DefinitionRetire,
	InstanceRead, InstanceList, InstanceStop, InstanceMigrate, InstanceReset, InstanceDelete, BulkStart, BulkPause, BulkResume, BulkCancel,
	JobRetry, JobCancel,
	TaskAssign, TaskRelease, DeliveryRetry, DeliveryDrop, IncidentRetry, IncidentDrop,
	SchedulePause, ScheduleResume, ScheduleRun,
	StoreBackup, StoreRestore, StoreExport, StoreImport, StoreCompact, NodeRemove,
}

// Actions returns all actions.
func Actions() []Action { return slices.Clone(actions) }
