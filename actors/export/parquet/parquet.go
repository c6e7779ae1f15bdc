// Package parquet writes rows of exports as a file of Parquet: one row group, a page for each column, compressed with zstd.
// All workflows have the same columns:
//
//	workflowId, instanceId, event, user   string
//	sequence                              int64
//	ts                                    timestamp, milliseconds, UTC
//	data, dataDigest                      string of JSON; null where the row has none
//	states                                string of JSON
package parquet

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"troupe/actors/export"
)

// record is the text of a row.
type record struct {
	WorkflowID string          `json:"workflowId"`
	InstanceID string          `json:"instanceId"`
	Sequence   int64           `json:"sequence"`
	Event      string          `json:"event"`
	Data       json.RawMessage `json:"data"`
	DataDigest json.RawMessage `json:"dataDigest"`
	User       string          `json:"user"`
	States     json.RawMessage `json:"states"`
	at         int64           // Unix milliseconds
}

type column struct {
	name     string
	kind     format.Type
	logical  format.LogicalTypeValue
	old      deprecated.ConvertedType // of logical, for readers that know no better
	optional bool
	// put appends the value in the plain encoding; nothing when it is null.
	put func([]byte, *record) []byte
}

var columns = []column{
	text("workflowId", func(r *record) string { return r.WorkflowID }),
	text("instanceId", func(r *record) string { return r.InstanceID }),
	{name: "sequence", kind: format.Int64, put: func(dst []byte, r *record) []byte { return number(dst, r.Sequence) }},
	text("event", func(r *record) string { return r.Event }),
	document("data", true, func(r *record) []byte { return r.Data }),
	document("dataDigest", true, func(r *record) []byte { return r.DataDigest }),
	text("user", func(r *record) string { return r.User }),
	{
		name: "ts", kind: format.Int64, old: deprecated.TimestampMillis,
		logical: &format.TimestampType{IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: &format.MilliSeconds{}}},
		put:     func(dst []byte, r *record) []byte { return number(dst, r.at) },
	},
	document("states", false, func(r *record) []byte { return r.States }),
}

func text(name string, of func(*record) string) column {
	return document(name, false, func(r *record) []byte { return []byte(of(r)) })
}

func document(name string, optional bool, of func(*record) []byte) column {
	return column{name: name, kind: format.ByteArray, logical: &format.StringType{}, old: deprecated.UTF8, optional: optional, put: func(dst []byte, r *record) []byte {
		value := of(r)
		if optional && (value == nil || string(value) == "null") {
			return dst
		}
		return sized(dst, value)
	}}
}

func number(dst []byte, n int64) []byte { return binary.LittleEndian.AppendUint64(dst, uint64(n)) }

func sized(dst, value []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(value))), value...)
}

// page has the values of a column: before them, when some may be null, a bit for each row that says which are there.
func (c *column) page(records []record) []byte {
	present := make([]byte, (len(records)+7)/8)
	var values []byte
	for i := range records {
		before := len(values)
		if values = c.put(values, &records[i]); len(values) > before {
			present[i/8] |= 1 << (i % 8)
		}
	}
	if !c.optional {
		return values
	}
	// The levels are a single run of the hybrid encoding, packed in groups of eight bits.
	levels := append(binary.AppendUvarint(nil, uint64(len(present))<<1|1), present...)
	return append(sized(nil, levels), values...)
}

const magic = "PAR1"

// Encode returns the whole file. An error is a row that is not one.
func Encode(rows []export.Row) ([]byte, error) {
	records := make([]record, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row.Text, &records[i]); err != nil {
			return nil, fmt.Errorf("a row of an export: %w", err)
		}
		records[i].at = row.At.UnixMilli()
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	out := []byte(magic)
	group := format.RowGroup{NumRows: int64(len(rows)), FileOffset: int64(len(out))}
	schema := []format.SchemaElement{{Name: "row", NumChildren: thrift.New(int32(len(columns)))}}
	for i := range columns {
		c := &columns[i]
		chunk, err := c.append(&out, records, z)
		if err != nil {
			return nil, err
		}
		group.Columns = append(group.Columns, chunk)
		group.TotalByteSize += chunk.MetaData.TotalUncompressedSize
		group.TotalCompressedSize += chunk.MetaData.TotalCompressedSize
		schema = append(schema, c.element())
	}
	footer, err := thrift.Marshal(&thrift.CompactProtocol{}, &format.FileMetaData{
		Version: 2, Schema: schema, NumRows: int64(len(rows)), RowGroups: []format.RowGroup{group}, CreatedBy: "troupe",
	})
	if err != nil {
		return nil, err
	}
	out = binary.LittleEndian.AppendUint32(append(out, footer...), uint32(len(footer)))
	return append(out, magic...), nil
}

// append writes the only page of a column.
func (c *column) append(out *[]byte, records []record, z *zstd.Encoder) (format.ColumnChunk, error) {
	plain := c.page(records)
	packed := z.EncodeAll(plain, nil)
	header, err := thrift.Marshal(&thrift.CompactProtocol{}, &format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: int32(len(plain)), CompressedPageSize: int32(len(packed)),
		CRC: int32(crc32.ChecksumIEEE(packed)),
		DataPageHeader: thrift.New(format.DataPageHeader{
			NumValues: int32(len(records)), Encoding: format.Plain, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		}),
	})
	if err != nil {
		return format.ColumnChunk{}, err
	}
	at := int64(len(*out))
	*out = append(append(*out, header...), packed...)
	return format.ColumnChunk{MetaData: format.ColumnMetaData{
		Type: c.kind, Encoding: []format.Encoding{format.Plain, format.RLE}, PathInSchema: []string{c.name}, Codec: format.Zstd,
		NumValues: int64(len(records)), TotalUncompressedSize: int64(len(header) + len(plain)), TotalCompressedSize: int64(len(header) + len(packed)),
		DataPageOffset: at,
	}}, nil
}

func (c *column) element() format.SchemaElement {
	e := format.SchemaElement{Name: c.name, Type: thrift.New(c.kind), RepetitionType: thrift.New(format.Required)}
	if c.optional {
		e.RepetitionType = thrift.New(format.Optional)
	}
	if c.logical != nil {
		e.LogicalType, e.ConvertedType = format.LogicalType{Value: c.logical}, thrift.New(c.old)
	}
	return e
}
