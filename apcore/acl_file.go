package apcore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// DefaultACLRoot is the directory in which [DiscoverACL] looks, and
// ACLFileName the file (§6.5).
const (
	DefaultACLRoot = "./acl"
	ACLFileName    = "global_acl.yaml"
)

// ParseACL reads access rules from YAML or JSON (apcore §6.1):
//
//	default_effect: deny
//	rules:
//	  - callers: ["@external"]
//	    targets: ["public.*"]
//	    effect: allow
//	audit: {enabled: true, log_level: info, include_denied: true}
//
// The key rules is required, other root keys may be missing and unknown ones are
// ignored. Faults fail with ACL_RULE_ERROR, in the audit block with
// CONFIG_INVALID; the message and details.line, details.rule_index and
// details.key say where. The order is that of [NewACL], the keys of a rule
// before their values, the audit block at the end.
func ParseACL(data []byte, opts ACLOptions) (*ACL, error) { return parseACL("", data, opts) }

// LoadACL reads access rules from a file, see [ParseACL]. A missing file fails
// with CONFIG_NOT_FOUND, one that cannot be read with ACL_RULE_ERROR.
func LoadACL(path string, opts ACLOptions) (*ACL, error) {
	data, err := readACL(path)
	if err != nil {
		return nil, err
	}
	return parseACL(path, data, opts)
}

// DiscoverACL loads [ACLFileName] from a directory, [DefaultACLRoot] if root is
// empty. Without that file there is no access control and the result is nil,
// which [ExecutorOptions] understands (§6.5). A file that is there but cannot be
// used fails as in [LoadACL].
func DiscoverACL(root string, opts ACLOptions) (*ACL, error) {
	if root == "" {
		root = DefaultACLRoot
	}
	path := filepath.Join(root, ACLFileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // none
	}
	return LoadACL(path, opts)
}

// Reload reads the file again and replaces rules, default effect and audit
// block; conditions and the audit callback stay. When it fails, with the codes
// of [LoadACL], all stays as it was. Rules that come from no file fail with
// GENERAL_INVALID_INPUT.
func (a *ACL) Reload() error {
	if a.source == "" {
		return NewError(CodeInvalidInput, "these access rules come from no file: only those of LoadACL and DiscoverACL can be read again")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	data, err := readACL(a.source)
	if err != nil {
		return err
	}
	return a.adopt(data, a.state.Load().conditions)
}

func readACL(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, NewError(CodeConfigNotFound, "there is no file %s with access rules", path).WithCause(err).WithDetail("path", path)
	case err != nil:
		return nil, NewError(CodeACLRule, "the access rules cannot be read: %w", err).WithDetail("path", path)
	default:
		return data, nil
	}
}

func parseACL(path string, data []byte, opts ACLOptions) (*ACL, error) {
	a, conditions, err := bareACL(opts)
	if err != nil {
		return nil, err
	}
	a.source = path
	if err := a.adopt(data, conditions); err != nil {
		return nil, err
	}
	return a, nil
}

// adopt replaces the state by what a document says.
func (a *ACL) adopt(data []byte, conditions map[string]ACLCondition) error {
	effect, fault := checkDefaultEffect(a.given.DefaultEffect)
	if fault != nil {
		return fault.error("ACLOptions", nil)
	}
	document, err := (&aclReader{source: a.source}).read(data, effect)
	if err != nil {
		return err
	}
	a.warnOfPatterns(document.rules)
	a.warnOfAudit(document.audit)
	a.state.Store(newACLState(document.rules, document.effect, document.audit, conditions))
	return nil
}

// aclDocument is what a file says.
type aclDocument struct {
	effect ACLEffect
	rules  []ACLRule
	audit  *auditConfig
}

// read reads a document; effect is the default where it names none.
func (r *aclReader) read(data []byte, effect ACLEffect) (*aclDocument, error) {
	root, err := r.parse(data)
	if err != nil {
		return nil, err
	}
	fields, fault := r.fields(root, "the document", CodeACLRule, nil)
	if fault != nil {
		return nil, fault
	}
	document := &aclDocument{effect: effect}
	if node := fields["default_effect"]; node != nil {
		text, reason := r.text(node)
		document.effect = ACLEffect(text)
		if reason == "" {
			reason = checkEffect(document.effect)
		}
		if reason != "" {
			return nil, r.fail(node, -1, "default_effect", reason)
		}
	}
	if document.rules, err = r.rules(root, fields["rules"]); err != nil {
		return nil, err
	}
	document.audit, err = r.audit(fields["audit"])
	return document, err
}

// parse takes exactly one document.
func (r *aclReader) parse(data []byte) (*yaml.Node, error) {
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(plainEscapes(data)))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, r.broken("the document is empty: give at least rules: []")
	case err != nil:
		return nil, r.broken(err.Error())
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, r.broken("something follows the first document: give one document only")
	}
	return document.Content[0], nil
}

func (r *aclReader) broken(reason string) *Error {
	err := NewError(CodeACLRule, "%s: %s", r.name(), reason)
	if r.source != "" {
		err = err.WithDetail("path", r.source)
	}
	return err
}

func (r *aclReader) rules(root, node *yaml.Node) ([]ACLRule, error) {
	if node == nil {
		return nil, r.fail(root, -1, "rules", "is missing: give a list, which may be empty")
	}
	if node = r.target(node); node.Kind != yaml.SequenceNode {
		return nil, r.fail(node, -1, "rules", "must be a list, not "+nodeKind(node))
	}
	rules := make([]ACLRule, len(node.Content))
	for i, item := range node.Content {
		rule, err := r.rule(item, i)
		if err != nil {
			return nil, err
		}
		rules[i] = rule
	}
	return rules, nil
}

// audit reads the audit block; nil means that the file has none.
func (r *aclReader) audit(node *yaml.Node) (*auditConfig, error) {
	if node == nil {
		return nil, nil //nolint:nilnil // none
	}
	fields, fault := r.fields(node, "audit", CodeConfigInvalid, auditKeys)
	if fault != nil {
		return nil, fault
	}
	config := &auditConfig{enabled: true, includeDenied: true, level: slog.LevelInfo}
	for _, key := range auditKeys {
		value := fields[key]
		if value == nil {
			continue
		}
		config.declared = append(config.declared, key)
		if reason := r.auditField(config, key, value); reason != "" {
			return nil, r.at(CodeConfigInvalid, value, "audit."+key+" "+reason).WithDetail("key", key)
		}
	}
	return config, nil
}

var auditKeys = []string{"enabled", "log_level", "include_denied"}

var auditLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "warning": slog.LevelWarn, "error": slog.LevelError,
}

func (r *aclReader) auditField(config *auditConfig, key string, node *yaml.Node) (reason string) {
	if key == "log_level" {
		text, reason := r.text(node)
		if reason != "" {
			return reason
		}
		level, known := auditLevels[text]
		if !known {
			return fmt.Sprintf("is %.40q: give debug, info, warn or error", text)
		}
		config.level = level
		return ""
	}
	value, reason := r.value(node, 0)
	flag, ok := value.(bool)
	if reason != "" || !ok {
		return "must be true or false"
	}
	if key == "enabled" {
		config.enabled = flag
	} else {
		config.includeDenied = flag
	}
	return ""
}
