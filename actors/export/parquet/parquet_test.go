package parquet

import (
	"bytes"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/export"
)

// TestAFileHasTheRows as another reader sees them: the columns with their types, and each value at its place.
func TestAFileHasTheRows(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 123e6, time.UTC)
	rows := []export.Row{export.Gap(at)}
	type read struct {
		WorkflowID string    `parquet:"workflowId"`
		InstanceID string    `parquet:"instanceId"`
		Sequence   int64     `parquet:"sequence"`
		Event      string    `parquet:"event"`
		Data       *string   `parquet:"data"`
		DataDigest *string   `parquet:"dataDigest"`
		User       string    `parquet:"user"`
		TS         time.Time `parquet:"ts,timestamp(millisecond)"`
		States     string    `parquet:"states"`
	}
	want := []read{{Event: export.GapEvent, User: "system", TS: at, States: "[]"}}
	add := func(text string, as read) {
		rows, want = append(rows, export.Row{At: at, Text: []byte(text)}), append(want, as)
	}
	few, digest := `{"a":[1,"ü\n"]}`, `{"sha256":"x","bytes":20000}`
	for n := range int64(20) {
		add(`{"workflowId":"w","instanceId":"i","sequence":7,"event":"","data":null,"user":"ann","ts":"2026-11-21T10:00:00.123Z","states":[{"stateMachineId":"m","nodeId":"s"}]}`,
			read{WorkflowID: "w", InstanceID: "i", Sequence: 7, User: "ann", TS: at, States: `[{"stateMachineId":"m","nodeId":"s"}]`})
		if n%3 == 0 {
			add(`{"workflowId":"w","instanceId":"i","sequence":8,"event":"Ünfug","data":`+few+`,"user":"ann","ts":"2026-11-21T10:00:00.123Z","states":[]}`,
				read{WorkflowID: "w", InstanceID: "i", Sequence: 8, Event: "Ünfug", Data: &few, User: "ann", TS: at, States: "[]"})
			add(`{"workflowId":"w","instanceId":"i","sequence":9007199254740993,"event":"e","data":null,"dataDigest":`+digest+`,"user":"ann","ts":"2026-11-21T10:00:00.123Z","states":[]}`,
				read{WorkflowID: "w", InstanceID: "i", Sequence: 9007199254740993, Event: "e", DataDigest: &digest, User: "ann", TS: at, States: "[]"})
		}
	}
	text, err := Encode(rows)
	require.NoError(t, err)
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	assert.Equal(t, `message row {
	required binary workflowId (STRING);
	required binary instanceId (STRING);
	required int64 sequence (INT(64,true));
	required binary event (STRING);
	optional binary data (STRING);
	optional binary dataDigest (STRING);
	required binary user (STRING);
	required int64 ts (TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS));
	required binary states (STRING);
}`, file.Schema().String())
	got, err := parquet.Read[read](bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	assert.Equal(t, want, got)

	_, err = Encode([]export.Row{{Text: []byte(`{"sequence":"one"}`)}})
	assert.ErrorContains(t, err, "a row of an export")
}
