package apcore

import "slices"

// Code names a kind of failure. It is the only part of an error that other
// languages and other processes may rely on (apcore §8.2). A Code is itself an
// error, so that a caller can ask errors.Is(err, apcore.CodeACLDenied).
//
// The codes of the framework are the constants below; modules bring their own
// through an [ErrorCodeRegistry]. Unknown codes are kept as they are.
type Code string

// Error returns the code's text; it makes a Code usable with errors.Is.
func (c Code) Error() string { return string(c) }

// The codes of the standard, grouped as in §8.2.
const (
	// CodeConfigNotFound: a configuration file is missing.
	CodeConfigNotFound Code = "CONFIG_NOT_FOUND"
	// CodeConfigInvalid: a configuration value is not allowed.
	CodeConfigInvalid Code = "CONFIG_INVALID"
	// CodeConfigBindError: a configuration could not be bound to its target.
	CodeConfigBindError Code = "CONFIG_BIND_ERROR"
	// CodeConfigMountError: a configuration could not be mounted.
	CodeConfigMountError Code = "CONFIG_MOUNT_ERROR"
	// CodeConfigNamespaceDuplicate: a configuration namespace exists already.
	CodeConfigNamespaceDuplicate Code = "CONFIG_NAMESPACE_DUPLICATE"
	// CodeConfigNamespaceReserved: a configuration namespace is the framework's.
	CodeConfigNamespaceReserved Code = "CONFIG_NAMESPACE_RESERVED"
	// CodeConfigEnvPrefixConflict: two namespaces claim one environment prefix.
	CodeConfigEnvPrefixConflict Code = "CONFIG_ENV_PREFIX_CONFLICT"
	// CodeConfigEnvMapConflict: two namespaces claim one environment variable.
	CodeConfigEnvMapConflict Code = "CONFIG_ENV_MAP_CONFLICT"
	// CodeConfigKeyRestricted: a configuration key may not be changed here.
	CodeConfigKeyRestricted Code = "CONFIG_KEY_RESTRICTED"

	// CodeModuleNotFound: no module is registered under the id.
	CodeModuleNotFound Code = "MODULE_NOT_FOUND"
	// CodeModuleLoadError: a module could not be loaded.
	CodeModuleLoadError Code = "MODULE_LOAD_ERROR"
	// CodeModuleExecuteError: the module itself failed; retryable is unknown.
	CodeModuleExecuteError Code = "MODULE_EXECUTE_ERROR"
	// CodeModuleTimeout: the module's timer or the deadline of the call tree ran out.
	CodeModuleTimeout Code = "MODULE_TIMEOUT"
	// CodeModuleDisabled: the module is switched off.
	CodeModuleDisabled Code = "MODULE_DISABLED"
	// CodeInvalidModuleID: a module id breaks the grammar of §2 or is reserved.
	CodeInvalidModuleID Code = "INVALID_MODULE_ID"
	// CodeDuplicateModuleID: the id is taken.
	CodeDuplicateModuleID Code = "DUPLICATE_MODULE_ID"
	// CodeModuleIDConflict: discovery found one id twice.
	CodeModuleIDConflict Code = "MODULE_ID_CONFLICT"
	// CodeIDTooLong: discovery found an id over the limit.
	CodeIDTooLong Code = "ID_TOO_LONG"
	// CodeInvalidSegment: discovery found a name that cannot be a segment.
	CodeInvalidSegment Code = "INVALID_SEGMENT"
	// CodeModuleReloadConflict: a reload contradicts another one.
	CodeModuleReloadConflict Code = "MODULE_RELOAD_CONFLICT"
	// CodeReloadFailed: a reload failed and may be tried again.
	CodeReloadFailed Code = "RELOAD_FAILED"
	// CodeStreamingInterfaceMismatch: annotations promise streaming, the module cannot.
	CodeStreamingInterfaceMismatch Code = "STREAMING_INTERFACE_MISMATCH"

	// CodeContextBinding: a context is bound to another executor.
	CodeContextBinding Code = "CONTEXT_BINDING_ERROR"
	// CodeExecutionCancelled: the call was cancelled; a new token may try again.
	CodeExecutionCancelled Code = "EXECUTION_CANCELLED"
	// CodeCircuitBreakerOpen: a circuit breaker refused the call.
	CodeCircuitBreakerOpen Code = "CIRCUIT_BREAKER_OPEN"
	// CodeCallDepthExceeded: the call chain is too deep.
	CodeCallDepthExceeded Code = "CALL_DEPTH_EXCEEDED"
	// CodeCircularCall: a module is called again through another one.
	CodeCircularCall Code = "CIRCULAR_CALL"
	// CodeCallFrequencyExceeded: a module calls itself too often.
	CodeCallFrequencyExceeded Code = "CALL_FREQUENCY_EXCEEDED"

	// CodeSchemaValidation: inputs or output do not satisfy the schema.
	CodeSchemaValidation Code = "SCHEMA_VALIDATION_ERROR"
	// CodeSchemaUnionNoMatch: no branch of a union accepts the value.
	CodeSchemaUnionNoMatch Code = "SCHEMA_UNION_NO_MATCH"
	// CodeSchemaUnionAmbiguous: more than one branch of a oneOf accepts the value.
	CodeSchemaUnionAmbiguous Code = "SCHEMA_UNION_AMBIGUOUS"
	// CodeSchemaNotFound: a schema or a reference in it does not exist.
	CodeSchemaNotFound Code = "SCHEMA_NOT_FOUND"
	// CodeSchemaParse: a schema cannot be read or enforced.
	CodeSchemaParse Code = "SCHEMA_PARSE_ERROR"
	// CodeSchemaCircularRef: references lead in a circle.
	CodeSchemaCircularRef Code = "SCHEMA_CIRCULAR_REF"
	// CodeSchemaMaxDepth: references are nested too deep.
	CodeSchemaMaxDepth Code = "SCHEMA_MAX_DEPTH_EXCEEDED"

	// CodeACLDenied: the access rules deny the call.
	CodeACLDenied Code = "ACL_DENIED"
	// CodeACLRule: an access rule is malformed.
	CodeACLRule Code = "ACL_RULE_ERROR"
	// CodeApprovalDenied: the approval gate got a refusal.
	CodeApprovalDenied Code = "APPROVAL_DENIED"
	// CodeApprovalTimeout: nobody decided in time.
	CodeApprovalTimeout Code = "APPROVAL_TIMEOUT"
	// CodeApprovalPending: the decision is still to come; resume with the approval id.
	CodeApprovalPending Code = "APPROVAL_PENDING"

	// CodeFuncMissingTypeHint: a function module lacks an input type.
	CodeFuncMissingTypeHint Code = "FUNC_MISSING_TYPE_HINT"
	// CodeFuncMissingReturnType: a function module lacks an output type.
	CodeFuncMissingReturnType Code = "FUNC_MISSING_RETURN_TYPE"
	// CodeBindingInvalidTarget: a binding names no valid target.
	CodeBindingInvalidTarget Code = "BINDING_INVALID_TARGET"
	// CodeBindingModuleNotFound: a binding's package is missing.
	CodeBindingModuleNotFound Code = "BINDING_MODULE_NOT_FOUND"
	// CodeBindingCallableNotFound: a binding's function is missing.
	CodeBindingCallableNotFound Code = "BINDING_CALLABLE_NOT_FOUND"
	// CodeBindingNotCallable: a binding's target is not a function.
	CodeBindingNotCallable Code = "BINDING_NOT_CALLABLE"
	// CodeBindingFileInvalid: a binding file is malformed.
	CodeBindingFileInvalid Code = "BINDING_FILE_INVALID"
	// CodeBindingSchemaInference: a binding's schema cannot be inferred.
	CodeBindingSchemaInference Code = "BINDING_SCHEMA_INFERENCE_FAILED"
	// CodeBindingSchemaMode: a binding gives its schema in two ways.
	CodeBindingSchemaMode Code = "BINDING_SCHEMA_MODE_CONFLICT"
	// CodeBindingStrictSchema: a binding's schema has no strict form.
	CodeBindingStrictSchema Code = "BINDING_STRICT_SCHEMA_INCOMPATIBLE"

	// CodeMiddlewareChain wraps a middleware's failure inside the engine; it never leaves a call.
	CodeMiddlewareChain Code = "MIDDLEWARE_CHAIN_ERROR"
	// CodePipelineStep wraps a step's failure inside the engine; it never leaves a call.
	CodePipelineStep Code = "PIPELINE_STEP_ERROR"
	// CodePipelineAbort: a step ended the pipeline.
	CodePipelineAbort Code = "PIPELINE_ABORT"
	// CodePipelineDependency: a step lacks what it requires.
	CodePipelineDependency Code = "PIPELINE_DEPENDENCY_ERROR"
	// CodePipelineStepNotFound: configuration names an unknown step.
	CodePipelineStepNotFound Code = "PIPELINE_STEP_NOT_FOUND"
	// CodePipelineHandlerNotSupported: an import string cannot name a handler in Go.
	CodePipelineHandlerNotSupported Code = "PIPELINE_HANDLER_NOT_SUPPORTED"
	// CodePipelineConfiguration: a gate step may not be configured so.
	CodePipelineConfiguration Code = "PIPELINE_CONFIGURATION_ERROR"
	// CodeStepNotFound: no step has that name.
	CodeStepNotFound Code = "STEP_NOT_FOUND"
	// CodeStepNameDuplicate: a step has that name already.
	CodeStepNameDuplicate Code = "STEP_NAME_DUPLICATE"
	// CodeStepNotRemovable: the step has to stay.
	CodeStepNotRemovable Code = "STEP_NOT_REMOVABLE"
	// CodeStepNotReplaceable: the step cannot be replaced.
	CodeStepNotReplaceable Code = "STEP_NOT_REPLACEABLE"
	// CodeStrategyNotFound: no strategy has that name.
	CodeStrategyNotFound Code = "STRATEGY_NOT_FOUND"

	// CodeTaskLimitExceeded: too many tasks are active.
	CodeTaskLimitExceeded Code = "TASK_LIMIT_EXCEEDED"
	// CodeTaskStoreUnavailable: the task store cannot be reached.
	CodeTaskStoreUnavailable Code = "TASK_STORE_UNAVAILABLE"
	// CodeReaperAlreadyRunning: the reaper runs already.
	CodeReaperAlreadyRunning Code = "REAPER_ALREADY_RUNNING"
	// CodeSysModulesDisabled: system modules are switched off.
	CodeSysModulesDisabled Code = "SYS_MODULES_DISABLED"
	// CodeSysModuleRegistration: a system module could not be registered.
	CodeSysModuleRegistration Code = "SYS_MODULE_REGISTRATION_FAILED"

	// CodeVersionIncompatible: versions do not fit together.
	CodeVersionIncompatible Code = "VERSION_INCOMPATIBLE"
	// CodeVersionConstraintInvalid: a version constraint is malformed.
	CodeVersionConstraintInvalid Code = "VERSION_CONSTRAINT_INVALID"
	// CodeCircularDependency: modules depend on each other.
	CodeCircularDependency Code = "CIRCULAR_DEPENDENCY"
	// CodeDependencyNotFound: a required module is missing.
	CodeDependencyNotFound Code = "DEPENDENCY_NOT_FOUND"
	// CodeDependencyVersionMismatch: a required module has the wrong version.
	CodeDependencyVersionMismatch Code = "DEPENDENCY_VERSION_MISMATCH"
	// CodeErrorCodeCollision: an error code is taken or reserved.
	CodeErrorCodeCollision Code = "ERROR_CODE_COLLISION"
	// CodeErrorFormatterDuplicate: an error formatter exists already.
	CodeErrorFormatterDuplicate Code = "ERROR_FORMATTER_DUPLICATE"
	// CodeInvalidParentID: a W3C parent id is malformed.
	CodeInvalidParentID Code = "INVALID_PARENT_ID"

	// CodeInvalidInput: a value given to the framework is not allowed.
	CodeInvalidInput Code = "GENERAL_INVALID_INPUT"
	// CodeInternal: the framework or a hook failed.
	CodeInternal Code = "GENERAL_INTERNAL_ERROR"
	// CodeNotImplemented: the operation does not exist here.
	CodeNotImplemented Code = "GENERAL_NOT_IMPLEMENTED"
)

// trait is one row of the code table (§8.6): what a new error of that code says
// of itself unless it is told otherwise.
type trait struct {
	retryable   *bool
	userFixable *bool
}

var (
	yes = new(true)
	no  = new(false)
)

// traits holds every framework code. A code that is missing here counts as a
// module's own: nothing is known of it.
var traits = map[Code]trait{
	CodeConfigNotFound:              {retryable: no},
	CodeConfigInvalid:               {retryable: no},
	CodeConfigBindError:             {retryable: no},
	CodeConfigMountError:            {retryable: no},
	CodeConfigNamespaceDuplicate:    {retryable: no},
	CodeConfigNamespaceReserved:     {retryable: no},
	CodeConfigEnvPrefixConflict:     {retryable: no},
	CodeConfigEnvMapConflict:        {retryable: no},
	CodeConfigKeyRestricted:         {retryable: no},
	CodeModuleNotFound:              {retryable: no, userFixable: yes},
	CodeModuleLoadError:             {retryable: no},
	CodeModuleExecuteError:          {},
	CodeModuleTimeout:               {retryable: yes, userFixable: no},
	CodeModuleDisabled:              {retryable: no, userFixable: no},
	CodeInvalidModuleID:             {retryable: no},
	CodeDuplicateModuleID:           {retryable: no},
	CodeModuleIDConflict:            {retryable: no},
	CodeIDTooLong:                   {retryable: no},
	CodeInvalidSegment:              {retryable: no},
	CodeModuleReloadConflict:        {retryable: no},
	CodeReloadFailed:                {retryable: yes},
	CodeStreamingInterfaceMismatch:  {retryable: no},
	CodeContextBinding:              {retryable: no},
	CodeExecutionCancelled:          {retryable: yes},
	CodeCircuitBreakerOpen:          {retryable: yes},
	CodeCallDepthExceeded:           {retryable: no, userFixable: no},
	CodeCircularCall:                {retryable: no, userFixable: no},
	CodeCallFrequencyExceeded:       {retryable: no, userFixable: no},
	CodeSchemaValidation:            {retryable: no, userFixable: yes},
	CodeSchemaUnionNoMatch:          {retryable: no},
	CodeSchemaUnionAmbiguous:        {retryable: no},
	CodeSchemaNotFound:              {retryable: no},
	CodeSchemaParse:                 {retryable: no},
	CodeSchemaCircularRef:           {retryable: no},
	CodeSchemaMaxDepth:              {retryable: no},
	CodeACLDenied:                   {retryable: no, userFixable: no},
	CodeACLRule:                     {retryable: no},
	CodeApprovalDenied:              {retryable: no, userFixable: no},
	CodeApprovalTimeout:             {retryable: yes, userFixable: no},
	CodeApprovalPending:             {retryable: no},
	CodeFuncMissingTypeHint:         {retryable: no},
	CodeFuncMissingReturnType:       {retryable: no},
	CodeBindingInvalidTarget:        {retryable: no},
	CodeBindingModuleNotFound:       {retryable: no},
	CodeBindingCallableNotFound:     {retryable: no},
	CodeBindingNotCallable:          {retryable: no},
	CodeBindingFileInvalid:          {retryable: no},
	CodeBindingSchemaInference:      {retryable: no, userFixable: yes},
	CodeBindingSchemaMode:           {retryable: no, userFixable: yes},
	CodeBindingStrictSchema:         {retryable: no, userFixable: yes},
	CodeMiddlewareChain:             {retryable: no},
	CodePipelineStep:                {retryable: no},
	CodePipelineAbort:               {retryable: no},
	CodePipelineDependency:          {retryable: no},
	CodePipelineStepNotFound:        {retryable: no},
	CodePipelineHandlerNotSupported: {retryable: no},
	CodePipelineConfiguration:       {retryable: no},
	CodeStepNotFound:                {retryable: no},
	CodeStepNameDuplicate:           {retryable: no},
	CodeStepNotRemovable:            {retryable: no},
	CodeStepNotReplaceable:          {retryable: no},
	CodeStrategyNotFound:            {retryable: no},
	CodeTaskLimitExceeded:           {retryable: yes},
	CodeTaskStoreUnavailable:        {retryable: yes},
	CodeReaperAlreadyRunning:        {retryable: no},
	CodeSysModulesDisabled:          {retryable: no},
	CodeSysModuleRegistration:       {retryable: no},
	CodeVersionIncompatible:         {retryable: no},
	CodeVersionConstraintInvalid:    {retryable: no, userFixable: yes},
	CodeCircularDependency:          {retryable: no},
	CodeDependencyNotFound:          {retryable: no, userFixable: yes},
	CodeDependencyVersionMismatch:   {retryable: no, userFixable: yes},
	CodeErrorCodeCollision:          {retryable: no},
	CodeErrorFormatterDuplicate:     {retryable: no},
	CodeInvalidParentID:             {retryable: no, userFixable: yes},
	CodeInvalidInput:                {retryable: no, userFixable: yes},
	CodeInternal:                    {retryable: yes, userFixable: no},
	CodeNotImplemented:              {retryable: no},
}

// FrameworkCodes returns every code of the standard in alphabetical order.
func FrameworkCodes() []Code {
	codes := make([]Code, 0, len(traits))
	for code := range traits {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return codes
}

// IsFramework reports whether the code is one of the standard's.
func (c Code) IsFramework() bool {
	_, ok := traits[c]
	return ok
}

// DefaultRetryable returns what an error of this code says about repetition
// unless it was constructed otherwise; nil means unknown (§8.6).
func (c Code) DefaultRetryable() *bool { return copyBool(traits[c].retryable) }

// DefaultUserFixable returns whether the user can usually mend the cause of an
// error of this code; nil means unset.
func (c Code) DefaultUserFixable() *bool { return copyBool(traits[c].userFixable) }

func copyBool(b *bool) *bool {
	if b == nil {
		return nil
	}
	return new(*b)
}
