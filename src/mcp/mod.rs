//! The Model Context Protocol: what an agent's model sees of the service.
//!
//! A tool is an operation of the one table (`tool`), and its call goes the way of every other call
//! of the API: through [`Api`], which is the typed client where an agent runs this over its
//! stdio, and the server's own routes where it asks `/mcp`. So access, limits and problems are the
//! same, and no rule stands here.
//!
//! What a model needs besides: an acquire that waits, in slices (`wait`); one tool that says what
//! it holds (`holds`); resources, prompts, and the workflow in a few sentences (`guide`).
//!
//! Deliberately absent: sessions. Nothing is remembered between two calls, so a client that goes
//! away leaves nothing behind, and whoever wants to go on asks again.

mod guide;
mod holds;
mod resource;
mod tool;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, Tool as ToolInfo,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};

use crate::wire::ask::Ask;
use crate::wire::operation;
use crate::wire::problem::Problem;
use tool::{KEEP_ALIVE, KEEP_ALIVE_MINUTES_MAX, Tool, WHAT_DO_I_HOLD};
use wait::Caller;

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The JSON of a success.
    Answer(Value),
    /// The problem.
    Problem(Value),
    /// No answer: what was asked may have been done.
    Nothing(String),
}

/// The API, however it is reached.
pub trait Api: Send + Sync + 'static {
    /// Whether heartbeats can be sent for an agent: only by a process that lives as long as its
    /// session.
    const CAN_KEEP_ALIVE: bool;

    /// Makes a call.
    fn ask(&self, ask: Ask) -> impl Future<Output = Told> + Send;

    /// Whether no call should wait any more.
    fn is_ending(&self) -> bool;

    /// Notes that the agent has called a tool.
    fn note_call(&self) {}

    /// Sends heartbeats for a ticket, until so many minutes after the agent's last call: for 0, no
    /// more.
    fn keep_alive(&self, _ticket: &Value, _minutes: u64) {}
}

/// How long a call may take, whatever the server does. Clients of this protocol give up after 60 s.
const CALL_MAX: Duration = Duration::from_secs(55);

/// The requests that this server answers and that have params.
const KNOWN_METHODS: [&str; 5] =
    ["tools/call", "resources/read", "prompts/get", "completion/complete", "initialize"];

/// The protocol's server over an API.
pub struct Mcp<A>(Arc<A>);

impl<A> Clone for Mcp<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: Api> Mcp<A> {
    /// A server that asks this API.
    pub fn new(api: A) -> Self {
        Self(Arc::new(api))
    }

    async fn call(
        &self,
        name: &str,
        mut given: Map<String, Value>,
        caller: Caller,
    ) -> Result<Told, ErrorData> {
        // A model that leaves an argument out often says null, and 5.0 is the integer 5.
        given.retain(|_, value| !value.is_null());
        given.values_mut().for_each(tool::make_whole);
        if name == WHAT_DO_I_HOLD {
            return Ok(match given.keys().next() {
                None => holds::told(&*self.0).await,
                Some(field) => refusal(&Problem::invalid(field, "is not an argument of this tool")),
            });
        }
        let Some(tool) = tool::named(name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {name}"), None));
        };
        Ok(match self.carry_out(tool, given, caller).await {
            Ok(told) => told,
            Err(problem) => refusal(&problem),
        })
    }

    async fn carry_out(
        &self,
        tool: &Tool,
        mut given: Map<String, Value>,
        caller: Caller,
    ) -> Result<Told, Box<Problem>> {
        if !tool::is_waited_for(tool.operation) {
            return Ok(self.0.ask(tool.ask(given)?).await);
        }
        let most = tool::WAIT_HERE_SECONDS_MAX;
        let wait_here = tool::take_number(&mut given, tool::WAIT_HERE, most, most)?;
        let is_acquire = tool.operation.name == operation::ACQUIRE_LOCK.name;
        let minutes = if A::CAN_KEEP_ALIVE && is_acquire {
            tool::take_number(&mut given, KEEP_ALIVE, KEEP_ALIVE_MINUTES_MAX, 0)?
        } else {
            0
        };
        let mut ask = tool.ask(given)?;
        if !is_acquire {
            ask.wait_seconds = wait::slice(wait_here);
        }
        let told = wait::turn(&*self.0, ask, wait_here, caller, |ticket| {
            if A::CAN_KEEP_ALIVE && is_acquire {
                self.0.keep_alive(ticket, minutes);
            }
        });
        Ok(told.await)
    }
}

fn refusal(problem: &Problem) -> Told {
    Told::Problem(serde_json::to_value(problem).expect("its keys are names of fields"))
}

impl From<Told> for CallToolResult {
    fn from(told: Told) -> Self {
        let (value, is_error) = match told {
            Told::Answer(value) => (value, false),
            Told::Problem(value) => (value, true),
            Told::Nothing(why) => {
                let again = "call again with the same arguments, the same request_uuid too";
                let detail = format!("{why}. It may have been done: {again}");
                (json!({ "code": "unreachable", "detail": detail }), true)
            }
        };
        let text = ContentBlock::text(value.to_string());
        let mut result = if is_error { Self::error(vec![text]) } else { Self::success(vec![text]) };
        result.structured_content = Some(value);
        result
    }
}

fn info(tool: &Tool, can_keep_alive: bool) -> ToolInfo {
    let input = Arc::new(tool.input(can_keep_alive));
    let annotations = ToolAnnotations::new()
        .read_only(tool.is_read_only())
        .idempotent(tool.is_idempotent())
        .destructive(tool.is_destructive())
        .open_world(false);
    let info = ToolInfo::new(tool.operation.name, tool.description(), input);
    let info = info.with_annotations(annotations);
    match &tool.answer {
        Some(answer) => info.with_raw_output_schema(Arc::new(answer.clone())),
        None => info,
    }
}

/// Every tool, as a client lists them.
pub fn tools(can_keep_alive: bool) -> Vec<ToolInfo> {
    let own = holds::info();
    let operations = tool::TOOLS.iter().map(|tool| info(tool, can_keep_alive));
    std::iter::once(own).chain(operations).collect()
}

impl<A: Api> ServerHandler for Mcp<A> {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        InitializeResult::new(capabilities)
            .with_server_info(
                Implementation::new("pearing", env!("CARGO_PKG_VERSION")).with_title("Pearing"),
            )
            .with_instructions(guide::instructions(A::CAN_KEEP_ALIVE))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools(A::CAN_KEEP_ALIVE)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.note_call();
        let given = request.arguments.unwrap_or_default();
        let call = self.call(&request.name, given, Caller(context));
        // A client that gave up would never read what to do.
        let told = match tokio::time::timeout(CALL_MAX, call).await {
            Ok(told) => told?,
            Err(_) => Told::Nothing("no answer in time".to_owned()),
        };
        Ok(CallToolResult::from(told).into())
    }

    /// What rmcp can't read as one of the protocol's requests.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let what = format!("the params of {} are not as the protocol has them", request.method);
        Err(match KNOWN_METHODS.contains(&request.method.as_str()) {
            true => ErrorData::invalid_params(what, None),
            false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resource::all()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resource::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let none = |why: &str| ErrorData::resource_not_found(format!("{uri}: {why}"), None);
        let ask = resource::ask(&uri).ok_or_else(|| none("there is no such resource"))?;
        match self.0.ask(ask).await {
            Told::Answer(value) => Ok(resource::contents(&uri, &value).into()),
            Told::Problem(value) => {
                let why = value["detail"].as_str().unwrap_or("it can't be read").to_owned();
                Err(ErrorData::resource_not_found(format!("{uri}: {why}"), Some(value)))
            }
            Told::Nothing(why) => Err(ErrorData::internal_error(why, None)),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(guide::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        match guide::prompt(&request.name, &arguments) {
            Ok(prompt) => Ok(prompt.into()),
            Err(why) => Err(ErrorData::invalid_params(why, None)),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = request.context.and_then(|context| context.arguments).unwrap_or_default();
        let asked = resource::candidates(&request.argument.name, &known);
        let Some((ask, field)) = asked else { return Ok(CompleteResult::default()) };
        let Told::Answer(list) = self.0.ask(ask).await else {
            return Ok(CompleteResult::default());
        };
        let names = list["items"].as_array().into_iter().flatten();
        let names = names.filter_map(|item| item[field].as_str());
        let found: Vec<String> = names
            .filter(|name| name.starts_with(&request.argument.value))
            .take(CompletionInfo::MAX_VALUES)
            .map(str::to_owned)
            .collect();
        let completion =
            CompletionInfo::new(found).map_err(|why| ErrorData::internal_error(why, None));
        Ok(CompleteResult::new(completion?))
    }
}
