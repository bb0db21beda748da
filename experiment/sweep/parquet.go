package sweep

import (
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// rowGroup is how many rows are in memory before they are written.
const rowGroup = 10_000

// writeParquet writes the rows as a Parquet file, compressed, with a null where a row lacks a
// column.
func (t *rowSet) writeParquet(w io.Writer) error {
	typ := t.rowType()
	out := parquet.NewWriter(w, parquet.SchemaOf(reflect.New(typ).Interface()), parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(rowGroup), parquet.CreatedBy("rdmasim", experiment.Release(), ""))
	for row, err := range t.all() {
		if err != nil {
			return err
		}
		v := reflect.New(typ)
		for i, c := range t.columns {
			if value := c.value(row); value != nil {
				field := v.Elem().Field(i)
				field.Set(reflect.New(field.Type().Elem()))
				c.store(field.Elem(), value)
			}
		}
		if err := out.Write(v.Interface()); err != nil {
			return err
		}
	}
	return out.Close()
}

// rowType is a row as a struct, whose fields have the order of the columns.
func (t *rowSet) rowType() reflect.Type {
	names := t.distinct()
	fields := make([]reflect.StructField, len(t.columns))
	for i, c := range t.columns {
		var typ reflect.Type
		switch c.kind {
		case truth:
			typ = reflect.TypeFor[bool]()
		case integer:
			typ = reflect.TypeFor[int64]()
		case real:
			typ = reflect.TypeFor[float64]()
		default:
			typ = reflect.TypeFor[string]()
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.PointerTo(typ), Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", names[i]+",optional"))}
	}
	return reflect.StructOf(fields)
}

// store puts a value into a field of the column's kind.
func (c *column) store(field reflect.Value, v any) {
	switch c.kind {
	case truth:
		field.SetBool(v.(bool))
	case integer:
		if u, ok := v.(uint64); ok {
			field.SetInt(int64(u))
		} else {
			field.SetInt(int64(v.(int)))
		}
	case real:
		switch v := v.(type) {
		case int:
			field.SetFloat(float64(v))
		case uint64:
			field.SetFloat(float64(v))
		case float64:
			field.SetFloat(v)
		}
	default:
		field.SetString(table.Text(v))
	}
}
