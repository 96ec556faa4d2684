package schema
import ("testing";"fmt";"reflect";"math/big";"net/netip";"net/url";"time";"encoding/json";"net";"github.com/google/uuid")
type emb struct { A int `json:"a"`; B string }
type EmbP struct { C int `json:"c"` }
type mj struct{ x int }
func (mj) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }
type mt struct{ x int }
func (mt) MarshalText() ([]byte, error) { return []byte(`x`), nil }
type pe string
func (*pe) Enum() []string { return []string{"p"} }
type strEnumKey string
type gen[T any] struct { V T `json:"v"` }
type outer struct {
	A string `json:"a"`
	emb
	*EmbP
	Named emb `json:"named"`
	N int `json:"n,string"`
	IP netip.Addr `json:"ip"`
	Big *big.Int `json:"big"`
	BigV big.Int `json:"bigv"`
	U url.URL `json:"u"`
	D time.Duration `json:"d"`
	MJ mj `json:"mj"`
	MT mt `json:"mt"`
	NIP net.IP `json:"nip"`
	PE pe `json:"pe"`
	PPE *pe `json:"ppe"`
	LE []pe `json:"le"`
	Mm map[strEnumKey][]int `json:"mm"`
	Arr [2]byte `json:"arr"`
	Iface error `json:"iface"`
	G gen[int] `json:"g"`
	GU gen[uuid.UUID] `json:"gu"`
	PP **int `json:"pp"`
	PT *time.Time `json:"pt" jsonschema:"description=when"`
	Enum string `json:"enum" jsonschema:"enum=a,enum=b"`
	TS []string `json:"ts" jsonschema:"minItems=1,enum=a" apcore:"sensitive"`
	PS *string `json:"ps" jsonschema:"minLength=2,required"`
	OZ time.Time `json:"oz,omitzero"`
	Dash int `json:"-,"`
	Raw json.RawMessage `json:"raw" jsonschema:"description=anything"`
	St emb `json:"st" jsonschema:"description=a struct" apcore:"sensitive"`
	Un struct{ Z int `json:"z"` } `json:"un"`
	U64 uint64
}
func TestProbe(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[outer](), reflect.TypeFor[[]tree](), reflect.TypeFor[string](), reflect.TypeFor[any](), reflect.TypeFor[time.Time](), reflect.TypeFor[*outer]()} {
		got, err := Infer(typ)
		b, _ := json.MarshalIndent(got, "", " ")
		fmt.Println(typ, err); if typ != reflect.TypeFor[*outer]() { fmt.Println(string(b)) }
	}
	v := outer{EmbP: &EmbP{}}
	b, err := json.Marshal(v); fmt.Println(string(b), err)
	got, _ := Infer(reflect.TypeFor[outer]())
	va, err := Compile(got); fmt.Println(err)
	fmt.Println(va.Validate(v))
}
