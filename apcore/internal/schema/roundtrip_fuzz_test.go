package schema

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// source makes choices out of bytes; when they are used up, it chooses the first.
type source struct{ data []byte }

func (s *source) choose(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	first := int(s.data[0])
	s.data = s.data[1:]
	return first % n
}

func (s *source) bytes(n int) []byte {
	taken := make([]byte, n)
	s.data = s.data[copy(taken, s.data):]
	return taken
}

func (s *source) bits() uint64 { return binary.LittleEndian.Uint64(s.bytes(8)) }

// Loop is a type that contains itself in every way.
type Loop struct {
	Next *Loop           `json:"next"`
	More []Loop          `json:"more"`
	By   map[string]Loop `json:"by,omitempty"`
	N    int64           `json:"n"`
}

// Promoted is embedded.
type Promoted struct {
	Inner int64  `json:"inner"`
	Label string `json:"label,omitempty"`
}

// leaves are types without parts. A pointer to a pointer, a list or a map is not
// among the types: JSON has one null for both of their nils.
var leaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[int64](), reflect.TypeFor[uint64](), reflect.TypeFor[int8](),
	reflect.TypeFor[uint16](), reflect.TypeFor[float64](), reflect.TypeFor[float32](), reflect.TypeFor[[]byte](), reflect.TypeFor[time.Time](),
	reflect.TypeFor[uuid.UUID](), reflect.TypeFor[pointerEnum](), reflect.TypeFor[*big.Int](), reflect.TypeFor[netip.Addr](),
	reflect.TypeFor[Loop](), reflect.TypeFor[textKey](), reflect.TypeFor[time.Duration](), reflect.TypeFor[[3]byte](),
}

func (s *source) typ(depth int) reflect.Type {
	if depth <= 0 {
		return leaves[s.choose(len(leaves))]
	}
	switch s.choose(8) {
	case 0:
		return s.structure(depth - 1)
	case 1:
		return reflect.SliceOf(s.typ(depth - 1))
	case 2:
		return reflect.ArrayOf(s.choose(3), s.typ(depth-1))
	case 3:
		return reflect.MapOf(reflect.TypeFor[string](), s.typ(depth-1))
	case 4:
		if t := s.typ(depth - 1); t.Kind() != reflect.Pointer && t.Kind() != reflect.Slice && t.Kind() != reflect.Map {
			return reflect.PointerTo(t)
		}
		return reflect.TypeFor[*int64]()
	default:
		return leaves[s.choose(len(leaves))]
	}
}

// names are what a json tag may call a field; one that encoding/json does not
// take for a name, and one that is no name, are among them.
var names = []string{"", "plain", "ünï", "with space", "a/b~c", "$ref", "x-y", "it's", "-", "dotted.name"}

var options = []string{"", ",omitempty", ",omitzero", ",string"}

func (s *source) structure(depth int) reflect.Type {
	fields := []reflect.StructField{}
	for i := range s.choose(5) {
		name := names[s.choose(len(names))]
		if name != "" && name != "-" {
			name += fmt.Sprint(i)
		}
		if name == "-" {
			name = "-," // a field named "-", once at most
			if i > 0 {
				name = ""
			}
		}
		tag := name
		if !strings.HasSuffix(name, ",") {
			tag += options[s.choose(len(options))]
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprint("F", i), Type: s.typ(depth), Tag: reflect.StructTag(fmt.Sprintf("json:%q", tag)),
		})
	}
	switch s.choose(4) {
	case 1:
		fields = append(fields, reflect.StructField{Name: "Promoted", Type: reflect.TypeFor[Promoted](), Anonymous: true})
	case 2:
		fields = append(fields, reflect.StructField{Name: "Promoted", Type: reflect.TypeFor[*Promoted](), Anonymous: true})
	}
	return reflect.StructOf(fields)
}

// made are values of types that are not filled part by part.
var made = map[reflect.Type]func(*source) any{
	reflect.TypeFor[time.Time]():   func(s *source) any { return time.Unix(int64(s.bits()>>31), int64(s.choose(250))).UTC() },
	reflect.TypeFor[pointerEnum](): func(s *source) any { return pointerEnum([]string{"p", "q"}[s.choose(2)]) },
	reflect.TypeFor[netip.Addr]():  func(s *source) any { return netip.AddrFrom4([4]byte(s.bytes(4))) },
	reflect.TypeFor[*big.Int](): func(s *source) any {
		n := new(big.Int).SetBytes(s.bytes(s.choose(20)))
		return n.Neg(n)
	},
}

func (s *source) fill(v reflect.Value, depth int) {
	if maker := made[v.Type()]; maker != nil {
		v.Set(reflect.ValueOf(maker(s)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(s.choose(2) == 1)
	case reflect.Int8, reflect.Int64:
		v.SetInt(int64(s.bits()) >> (64 - v.Type().Bits()))
	case reflect.Uint8, reflect.Uint16, reflect.Uint64:
		v.SetUint(s.bits() >> (64 - v.Type().Bits()))
	case reflect.Float32:
		v.SetFloat(float64(bounded32(math.Float32frombits(uint32(s.bits())))))
	case reflect.Float64:
		v.SetFloat(bounded(math.Float64frombits(s.bits())))
	case reflect.String:
		v.SetString(s.text())
	case reflect.Pointer:
		if depth > 0 && s.choose(2) == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			s.fill(v.Elem(), depth-1)
		}
	default:
		s.fillParts(v, depth)
	}
}

func (s *source) fillParts(v reflect.Value, depth int) {
	size := 0
	if depth > 0 {
		size = s.choose(4)
	}
	switch v.Kind() {
	case reflect.Slice:
		if size > 0 { // 1 makes an empty list, 0 leaves nil
			v.Set(reflect.MakeSlice(v.Type(), size-1, size-1))
		}
		for i := range v.Len() {
			s.fill(v.Index(i), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			s.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		if size > 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for range size - 1 {
			item := reflect.New(v.Type().Elem()).Elem()
			s.fill(item, depth-1)
			v.SetMapIndex(reflect.ValueOf(s.text()), item)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			s.fill(v.Field(i), depth-1)
		}
	}
}

// text takes bytes as they come, and repairs what is no UTF-8: such texts are
// refused by the encoder.
func (s *source) text() string {
	return strings.ToValidUTF8(string(s.bytes(s.choose(12))), "\u2028<\u0000")
}

func bounded(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return math.MaxFloat64
	}
	return f
}

func bounded32(f float32) float32 {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return math.MaxFloat32
	}
	return f
}

// FuzzInferRoundTrip makes a Go type and a value of it out of the bytes: what Go
// writes satisfies the schema inferred from the type, and read back it is the
// same value. Pitfalls 39 and 44.
func FuzzInferRoundTrip(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("a type of its own, with a value \xff\xfe\xfd\xfc\xfb\xfa"))
	for seed := range uint64(400) {
		data := make([]byte, 160)
		generator := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // the same seeds each time
		for i := range data {
			data[i] = byte(generator.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &source{data}
		typ := s.structure(3)
		value := reflect.New(typ)
		s.fill(value.Elem(), 6)
		roundTrip(t, typ, value)
	})
}

func roundTrip(t *testing.T, typ reflect.Type, value reflect.Value) {
	t.Helper()
	schema := inferred(t, typ)
	validator, err := Compile(schema)
	if err != nil {
		t.Fatalf("%v: %v", typ, err)
	}
	text, err := jsonvalue.Encode(value.Interface())
	if err != nil {
		t.Fatalf("%v: %v", typ, err)
	}
	object, err := jsonvalue.DecodeObject(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	FillNil(schema, object)
	if items := validator.Validate(object); items != nil {
		t.Fatalf("%v\nwrites %s\nwhich its schema %v\nrefuses: %v", typ, text, schema, items)
	}
	filled, err := jsonvalue.Encode(object)
	if err != nil {
		t.Fatal(err)
	}
	back := reflect.New(typ)
	if err := json.Unmarshal(filled, back.Interface()); err != nil {
		t.Fatalf("%v\ncannot read %s: %v", typ, filled, err)
	}
	same := cmp.Options{
		cmpopts.EquateEmpty(), cmp.Comparer(func(a, b *big.Int) bool { return a == b || a != nil && b != nil && a.Cmp(b) == 0 }),
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	}
	if diff := cmp.Diff(value.Interface(), back.Interface(), same); diff != "" {
		t.Fatalf("%v\nwrites %s (-given +read back):\n%s", typ, filled, diff)
	}
}
